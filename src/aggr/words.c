#include "aggr/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *skip_blanks(const char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

static struct kymo_aggr_piece trim(const char *start, const char *end)
{
	while (start < end && is_blank(*start))
		start++;
	while (end > start && is_blank(end[-1]))
		end--;
	return (struct kymo_aggr_piece){ start, end };
}

/* After the character at `at`; one in single quotes is one with them. */
static const char *next_word(const char *at)
{
	return *at == '\'' && at[1] && at[2] == '\'' ? at + 3 : at + 1;
}

static int deeper(char c)
{
	return (c == '(' || c == '[') - (c == ')' || c == ']');
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int64_t factor;
} units[] = {
	{ "", 1 },   { "K", 1 << 10 }, { "M", 1 << 20 },  { "G", 1 << 30 },
	{ "ns", 1 }, { "us", 1000 },   { "ms", 1000000 }, { "s", 1000000000 },
};

static struct kymo_error *parse_number(const char *text, struct kymo_aggr_piece piece, int64_t *ret)
{
	char digits[64], *end;
	long long value;

	if (piece.start == piece.end || (size_t)(piece.end - piece.start) >= sizeof(digits))
		return kymo_error_at(text, piece.start, "expected a number, such as 4096, 4K or 10ms");
	memcpy(digits, piece.start, (size_t)(piece.end - piece.start));
	digits[piece.end - piece.start] = '\0';
	value = strtoll(digits, &end, 0);
	for (size_t i = 0; i < kymo_countof(units) && end > digits; i++)
		if (!strcmp(end, units[i].name) && !__builtin_mul_overflow(value, units[i].factor, ret))
			return NULL;
	return kymo_error_at(text, piece.start, "'%s' is no number; write 4096, 4K or 10ms", digits);
}

/* ---- the probe ------------------------------------------------------------------------------- */

/* After the word at `at`: to a blank outside of brackets. */
static const char *word_end(const char *at)
{
	int depth = 0;

	for (; *at && (depth > 0 || !is_blank(*at)); at++) {
		depth += deeper(*at) + (*at == '<') - (*at == '>' && depth > 0);
		if (*at == '\\' && at[1])
			at++;
	}
	return at;
}

/* Whether it has a ":" that is no part of a "::", and is no choice of an expression. */
static bool is_location(const char *start, const char *end)
{
	if (*start == '(' || memchr(start, '?', (size_t)(end - start)))
		return false;
	for (const char *c = start; c < end; c++) {
		size_t n = 0;

		while (c + n < end && c[n] == ':')
			n++;
		if (n % 2)
			return true;
		c += n ? n - 1 : 0;
	}
	return false;
}

/* "m GLOB"; a variable may be called m, too. */
static bool is_marker(const char *start, const char *end)
{
	const char *glob = skip_blanks(end);

	if (*start != 'm' || end != start + 1 || !(is_of_name(*glob) || (*glob && strchr("*?[", *glob))))
		return false;
	return strncmp(glob, "by", 2) != 0 || (glob[2] && !is_blank(glob[2]));
}

static bool is_probe_prefix(const char *start, const char *end)
{
	return (*start == 'p' || *start == 'r') && (end == start + 1 || start[1] == ':');
}

/* After the filter at `at`, or `at` where there is none. */
static struct kymo_error *skip_filter(const char *text, const char *at, const char **ret)
{
	const char *slash = skip_blanks(at), *last = NULL;
	int depth = 0;

	*ret = at;
	if (*slash != '/')
		return NULL;
	for (const char *c = slash + 1; *c; c = next_word(c)) {
		depth += deeper(*c);
		if (*c != '/' || depth > 0 || !(is_blank(c[1]) || !c[1]))
			continue;
		last = c;
		if (!is_blank(c[-1]))
			break;
	}
	if (!last)
		return kymo_error_at(text, slash, "expected '/' at the end of the filter, as in /arg0 > 4K/");
	*ret = last + 1;
	return NULL;
}

/* ---- limits of the duration, in the filter --------------------------------------------------- */

/* The next "&&" outside of brackets, or the end. */
static const char *find_and(const char *at, const char *end)
{
	int depth = 0;

	for (; at < end; at = next_word(at)) {
		depth += deeper(*at);
		if (!depth && *at == '&' && at + 1 < end && at[1] == '&')
			return at;
	}
	return end;
}

/* Whether a term has "||" or "?" outside of brackets: these bind less than the "&&" by which it is joined. */
static bool is_alternative(struct kymo_aggr_piece term)
{
	int depth = 0;

	for (const char *at = term.start; at < term.end; at = next_word(at)) {
		depth += deeper(*at);
		if (!depth && (*at == '?' || (*at == '|' && at + 1 < term.end && at[1] == '|')))
			return true;
	}
	return false;
}

static struct kymo_error *limit_error(const char *text, const char *at)
{
	return kymo_error_at(
		text, at,
		"the duration of a call is compared with a number, and that is joined to the rest by '&&': "
		"/arg0 > 4K && duration > 5ms/");
}

/* "duration > 5ms", and the like. */
static struct kymo_error *take_limit(const char *text, struct kymo_aggr_piece term, struct kymo_aggr_pieces *pieces)
{
	const char *at = skip_blanks(term.start + strlen("duration")), sign = *at;
	const bool is_equal = at < term.end && at[1] == '=';
	int64_t number;
	struct kymo_error *error;

	if (strncmp(term.start, "duration", strlen("duration")) || (sign != '<' && sign != '>'))
		return limit_error(text, term.start);
	error = parse_number(text, trim(at + 1 + is_equal, term.end), &number);
	if (error)
		return error;
	if (number < 0 || (number == 0 && sign == '<' && !is_equal))
		return kymo_error_at(text, term.start, "no call has such a duration");
	if (pieces->n_limits == KYMO_AGGR_LIMITS_MAX)
		return kymo_error_at(text, term.start, "a filter compares the duration %d times at most",
				     KYMO_AGGR_LIMITS_MAX);
	if (sign == '>' && (uint64_t)number + !is_equal > pieces->duration_min)
		pieces->duration_min = (uint64_t)number + !is_equal;
	if (sign == '<' && (uint64_t)number - !is_equal < pieces->duration_max)
		pieces->duration_max = (uint64_t)number - !is_equal;
	pieces->limits[pieces->n_limits++] = term;
	return NULL;
}

/* `filter` is what is between the slashes. */
static struct kymo_error *take_limits(const char *text, struct kymo_aggr_piece filter, struct kymo_aggr_pieces *pieces)
{
	const char *alternative = NULL;

	for (const char *at = filter.start; at < filter.end; pieces->n_terms++) {
		const char *and = find_and(at, filter.end);
		const struct kymo_aggr_piece term = trim(at, and);
		struct kymo_error *error = NULL;

		alternative = is_alternative(term) ? term.start : alternative;
		if (kymo_aggr_has_name(term, "duration"))
			error = alternative ? limit_error(text, alternative) : take_limit(text, term, pieces);
		if (error)
			return error;
		at = and < filter.end ? and+2 : and;
	}
	return pieces->n_limits && alternative ? limit_error(text, alternative) : NULL;
}

char *kymo_aggr_probe_text(const struct kymo_aggr_pieces *pieces)
{
	const struct kymo_aggr_piece probe = pieces->probe;
	char *text = strndup(probe.start, (size_t)(probe.end - probe.start));

	for (size_t i = 0; text && i < pieces->n_limits; i++) {
		const struct kymo_aggr_piece limit = pieces->limits[i];

		memset(text + (limit.start - probe.start), ' ', (size_t)(limit.end - limit.start));
		text[limit.start - probe.start] = '1';
	}
	if (!text || !pieces->n_limits || pieces->n_limits < pieces->n_terms)
		return text;
	/* Nothing else is in the filter. */
	if (pieces->filter.end == probe.end)
		text[pieces->filter.start - probe.start] = '\0';
	else
		memset(text + (pieces->filter.start - probe.start), ' ',
		       (size_t)(pieces->filter.end - pieces->filter.start));
	return text;
}

/* After "sample 1/100" or "first 10" at `at`, or `at` where there is none. The probe's own parser looks at them. */
static const char *skip_sample(const char *at)
{
	static const char *const words[] = { "sample", "first" };
	const char *word = skip_blanks(at);

	for (size_t i = 0; i < kymo_countof(words) && word > at; i++) {
		const char *number = word + strlen(words[i]);

		if (strncmp(word, words[i], strlen(words[i])) || !is_blank(*number))
			continue;
		number = skip_blanks(number);
		if (*number >= '0' && *number <= '9')
			return word_end(number);
	}
	return at;
}

static struct kymo_error *refuse_sample(const char *text, const char *at, const char *end)
{
	at = skip_blanks(at);
	return kymo_error_at(text, at, "markers are not sampled: leave '%.*s' out", (int)(end - at), at);
}

/* After the probe, with its filter and its samples, in either order. */
static struct kymo_error *take_probe(const char *text, struct kymo_aggr_pieces *pieces, const char **behind_ret)
{
	const char *start = skip_blanks(text), *end = word_end(start), *sample_end, *filter_end;
	struct kymo_error *error;

	*behind_ret = start;
	if (is_marker(start, end)) {
		pieces->marker = (struct kymo_aggr_piece){ skip_blanks(end), word_end(skip_blanks(end)) };
		end = pieces->marker.end;
	} else if (is_probe_prefix(start, end) && is_location(skip_blanks(end), word_end(skip_blanks(end))))
		end = word_end(skip_blanks(end));
	else if (!is_location(start, end))
		return NULL;
	sample_end = skip_sample(end);
	error = skip_filter(text, sample_end, &filter_end);
	if (error)
		return error;
	*behind_ret = skip_sample(filter_end);
	pieces->has_sample = sample_end > end || *behind_ret > filter_end;
	if (pieces->has_sample && pieces->marker.start)
		return refuse_sample(text, sample_end > end ? end : filter_end,
				     sample_end > end ? sample_end : *behind_ret);
	pieces->probe = (struct kymo_aggr_piece){ start, *behind_ret };
	if (filter_end == sample_end)
		return NULL;
	pieces->filter = (struct kymo_aggr_piece){ skip_blanks(sample_end), filter_end };
	error = take_limits(text, (struct kymo_aggr_piece){ pieces->filter.start + 1, filter_end - 1 }, pieces);
	if (!error && pieces->marker.start && pieces->n_limits < pieces->n_terms)
		error = kymo_error_at(text, pieces->filter.start,
				      "values of markers are not known to filters: compare the duration alone, as in "
				      "/duration > 200ms/");
	return error;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The word, outside of brackets, or the end. */
static const char *find_word(const char *at, const char *word)
{
	const size_t n = strlen(word);
	int depth = 0;

	for (const char *c = at; *c; c = next_word(c)) {
		depth += deeper(*c);
		if (!depth && (c == at || is_blank(c[-1])) && !strncmp(c, word, n) && (!c[n] || is_blank(c[n])))
			return c;
	}
	return at + strlen(at);
}

/* The comma outside of brackets, or the end. */
static const char *find_comma(const char *at, const char *end)
{
	int depth = 0;

	for (; at < end; at = next_word(at)) {
		depth += deeper(*at);
		if (!depth && *at == ',')
			return at;
	}
	return end;
}

static struct kymo_error *take_keys(const char *text, const char *by, struct kymo_aggr_pieces *pieces)
{
	const char *at = by + 2, *end = at + strlen(at);

	for (bool more = true; more;) {
		const char *comma = find_comma(at, end);
		const struct kymo_aggr_piece key = trim(at, comma);

		if (key.start == key.end)
			return kymo_error_at(text, key.start,
					     "expected a key: tid, pid, comm, probe, func, stack or an expression");
		if (pieces->n_keys == KYMO_AGGR_KEYS_MAX)
			return kymo_error_at(text, key.start, "an aggregation has at most %d keys", KYMO_AGGR_KEYS_MAX);
		if (kymo_aggr_what_of(key) == KYMO_AGGR_DURATION)
			return kymo_error_at(text, key.start,
					     "'duration' is a value and no key; write hist or lhist of it");
		pieces->keys[pieces->n_keys++] = key;
		more = *comma == ',';
		at = comma + 1;
	}
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* EXPR, LOW, HIGH, STEP */
static struct kymo_error *take_steps(const char *text, struct kymo_aggr_pieces *pieces)
{
	int64_t *const numbers[] = { &pieces->low, &pieces->high, &pieces->step };
	const char *end = pieces->value.end, *comma = find_comma(pieces->value.start, end), *first = comma, *at;
	int64_t width;

	pieces->value = trim(pieces->value.start, comma);
	for (size_t i = 0; i < kymo_countof(numbers); i++) {
		struct kymo_error *error;

		if (comma == end)
			return kymo_error_at(text, end,
					     "expected a value, the least and the greatest number, and the size of a "
					     "step, as in 'arg0, 0, 4096, 512'");
		at = comma + 1;
		comma = find_comma(at, end);
		error = parse_number(text, trim(at, comma), numbers[i]);
		if (error)
			return error;
	}
	if (comma != end)
		return kymo_error_at(text, comma, "expected 'by' or the end after the size of a step");
	at = trim(first + 1, end).start;
	if (__builtin_sub_overflow(pieces->high, pieces->low, &width) || width <= 0 || pieces->step <= 0 ||
	    width % pieces->step)
		return kymo_error_at(text, at,
				     "from the least number to the greatest there must be a whole number of "
				     "steps, of more than 0 each");
	if (width / pieces->step > KYMO_AGGR_STEPS_MAX)
		return kymo_error_at(text, at, "these are %lld steps; write larger ones, at most %d",
				     (long long)(width / pieces->step), KYMO_AGGR_STEPS_MAX);
	return NULL;
}

static struct kymo_error *check_value(enum kymo_aggr_kind kind, const char *text, const struct kymo_aggr_pieces *pieces)
{
	const struct kymo_aggr_piece value = pieces->value;
	const char *name = kymo_aggr_kind_name(kind);
	const bool has = value.start < value.end;

	if (kind == KYMO_AGGR_UNTIL && has)
		return kymo_error_at(text, value.start,
				     "--until takes a probe and a filter alone: 'libc:read /duration > 5ms/'");
	if (kind == KYMO_AGGR_UNTIL && !pieces->probe.start)
		return kymo_error_at(text, text,
				     "until what? Begin with FILE:FUNCTION, as in 'libc:malloc /arg0 > 1M/'");
	if (kind == KYMO_AGGR_UNTIL && pieces->has_sample)
		return kymo_error_at(text, pieces->probe.start,
				     "--until looks at each hit: leave 'sample' and 'first' out");
	if (kind == KYMO_AGGR_COUNT && has)
		return kymo_error_at(text, value.start, "count takes no value; write 'by' before keys, as in 'by tid'");
	if (kind == KYMO_AGGR_COUNT || kind == KYMO_AGGR_UNTIL || (kind == KYMO_AGGR_TOP && !has))
		return NULL;
	if (!has)
		return kymo_error_at(text, value.start, "%s takes a value, such as arg0, retval or duration", name);
	switch (kymo_aggr_what_of(value)) {
	case KYMO_AGGR_COMM:
	case KYMO_AGGR_PROBE:
	case KYMO_AGGR_FUNC:
		return kymo_error_at(text, value.start, "'%.*s' is text, and %s takes a number; write 'by %.*s'",
				     (int)(value.end - value.start), value.start, name, (int)(value.end - value.start),
				     value.start);
	case KYMO_AGGR_TID:
	case KYMO_AGGR_PID:
	case KYMO_AGGR_STACK:
		return kymo_error_at(text, value.start, "'%.*s' is a key; write 'by %.*s'",
				     (int)(value.end - value.start), value.start, (int)(value.end - value.start),
				     value.start);
	default:
		break;
	}
	if (value.end - value.start > 4 && (!strncmp(value.start, "str(", 4) || !strncmp(value.start, "buf(", 4)))
		return kymo_error_at(text, value.start, "'%.*s' is text, and %s takes a number",
				     (int)(value.end - value.start), value.start, name);
	return NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct kymo_error *kymo_aggr_split(enum kymo_aggr_kind kind, const char *text, struct kymo_aggr_pieces *ret)
{
	struct kymo_aggr_pieces pieces = { .duration_max = UINT64_MAX };
	const char *at, *by, *condition;
	struct kymo_error *error = take_probe(text, &pieces, &at);

	if (error)
		return error;
	condition = find_word(at, "if");
	if (*condition)
		return kymo_error_at(text, condition,
				     "write the filter between slashes, after the function: "
				     "'libc:malloc /arg0 > 4K/ by tid'");
	by = find_word(at, "by");
	pieces.value = trim(at, by);
	error = check_value(kind, text, &pieces);
	if (!error && kind == KYMO_AGGR_LHIST)
		error = take_steps(text, &pieces);
	if (!error && *by && kind == KYMO_AGGR_UNTIL)
		error = kymo_error_at(text, by, "--until has no keys: the first hit decides");
	if (!error && *by)
		error = take_keys(text, by, &pieces);
	if (!error)
		*ret = pieces;
	return error;
}

struct kymo_error *kymo_aggr_find_limits(const char *text, struct kymo_aggr_pieces *ret)
{
	struct kymo_aggr_pieces pieces = { .duration_max = UINT64_MAX };
	const char *end = text + strlen(text), *at, *condition;
	struct kymo_error *error = take_probe(text, &pieces, &at);

	condition = error ? end : find_word(at, "if");
	if (*condition && !pieces.filter.start) {
		pieces.filter = (struct kymo_aggr_piece){ condition, end };
		error = take_limits(text, (struct kymo_aggr_piece){ condition + 2, end }, &pieces);
	}
	if (error)
		return error;
	pieces.probe = (struct kymo_aggr_piece){ text, end };
	*ret = pieces;
	return NULL;
}

enum kymo_aggr_what kymo_aggr_what_of(struct kymo_aggr_piece piece)
{
	static const char *const names[] = {
		[KYMO_AGGR_TID] = "tid",     [KYMO_AGGR_PID] = "pid",           [KYMO_AGGR_COMM] = "comm",
		[KYMO_AGGR_PROBE] = "probe", [KYMO_AGGR_DURATION] = "duration", [KYMO_AGGR_STACK] = "stack",
		[KYMO_AGGR_FUNC] = "func",
	};

	for (size_t i = KYMO_AGGR_TID; i < kymo_countof(names); i++)
		if ((size_t)(piece.end - piece.start) == strlen(names[i]) &&
		    !memcmp(piece.start, names[i], strlen(names[i])))
			return (enum kymo_aggr_what)i;
	return KYMO_AGGR_VALUE;
}

bool kymo_aggr_has_name(struct kymo_aggr_piece piece, const char *name)
{
	const size_t n = strlen(name);

	char before = ' '; /* the name: not a blank */
	bool is_quoted = false;

	for (const char *c = piece.start; c < piece.end; c++) {
		const char *start = c;

		while (c < piece.end && is_of_name(*c))
			c++;
		if ((size_t)(c - start) == n && !memcmp(start, name, n) && !is_quoted && before != '.' && before != '>')
			return true;
		if (c > start)
			before = ' ';
		if (c < piece.end && *c == '"')
			is_quoted = !is_quoted;
		if (c < piece.end && !is_blank(*c)) /* '>' counts as a part of "->" alone */
			before = *c == '>' && (c == piece.start || c[-1] != '-') ? ' ' : *c;
	}
	return false;
}
