#include "probe/spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "probe/spec/spec_arg.h"
#include "probe/spec/spec_piece.h"
#include "probe/spec/spec_scope.h"
#include "probe/spec/spec_values.h"
#include "probe/spec/spec_write.h"
#include "sym/demangle.h"
#include "sym/glob.h"

#define ADDRESS_END ((uint64_t)1 << 47)

/* After parameters a qualifier belongs to the name, "total() const", as does what the compiler adds. */
static const char *skip_qualifiers(const char *at, const char *end)
{
	static const char *const words[] = { " const", " volatile", " &&", " &" };

	for (size_t i = 0; i < kymo_countof(words); i++) {
		const size_t n = strlen(words[i]);

		if (!strncmp(at, words[i], n) && (!at[n] || strchr(" %+", at[n])))
			return skip_qualifiers(at + n, end);
	}
	return strncmp(at, " [clone ", 8) != 0 ? at : skip_qualifiers(kymo_name_skip(at, at + 1, end), end);
}

/* The same of where a probe is: blanks within brackets, and those of an operator's name, are part of it. */
static struct kymo_spec_piece next_location(const char **at)
{
	struct kymo_spec_piece piece;
	const char *end = *at + strlen(*at);

	while (kymo_spec_is_space(**at))
		++*at;
	piece.start = *at;
	while (**at && !kymo_spec_is_space(**at)) {
		const char *behind = kymo_name_skip(piece.start, *at, end);

		if (behind == *at)
			behind += **at == '\\' && (*at)[1] ? 2 : 1;
		*at = behind[-1] == ')' ? skip_qualifiers(behind, end) : behind;
	}
	piece.end = *at;
	return piece;
}

/* A fresh copy without the backslashes that quote what would end a file or a symbol. Others are left to the glob. */
static char *unquote(struct kymo_spec_piece piece)
{
	char *copy = malloc((size_t)(piece.end - piece.start) + 1), *to = copy;

	if (!copy)
		return NULL;
	for (const char *c = piece.start; c < piece.end; c++) {
		if (*c == '\\' && c + 1 < piece.end && (kymo_spec_is_space(c[1]) || strchr(":+-%\\", c[1])))
			c++;
		*to++ = *c;
	}
	*to = '\0';
	return copy;
}

/* The last ":" of the piece that separates: it has no backslash before it, and is not in brackets, nor half of a "::".
 * The first of three does. */
static const char *find_colon(struct kymo_spec_piece piece)
{
	const char *found = NULL;

	for (const char *c = piece.start; c < piece.end;) {
		const char *behind = kymo_name_skip(piece.start, c, piece.end);
		size_t n = 0;

		while (c + n < piece.end && c[n] == ':')
			n++;
		if (n % 2)
			found = c;
		c = behind > c ? behind : n ? c + n : c + (*c == '\\' ? 2 : 1);
	}
	return found;
}

const char *kymo_spec_file_end(const char *text)
{
	return find_colon((struct kymo_spec_piece){ text, text + strlen(text) });
}

static struct kymo_error *copy_name(const char *text, struct kymo_spec_piece piece, const char *what, char **ret)
{
	const char *bad;

	if (piece.start == piece.end)
		return kymo_error_at(text, piece.start, "expected the name of %s", what);
	if (!kymo_spec_is_name(piece, &bad))
		return kymo_error_at(text, bad, "the name of %s has letters, digits and '_' only, no digit first",
				     what);
	if (piece.end - piece.start > KYMO_SPEC_NAME_MAX)
		return kymo_error_at(text, piece.start + KYMO_SPEC_NAME_MAX, "the name of %s has at most %d characters",
				     what, KYMO_SPEC_NAME_MAX);
	*ret = strndup(piece.start, (size_t)(piece.end - piece.start));
	return *ret ? NULL : &kymo_error_no_memory;
}

/* "p", "r", "p:…", "r:…" */
static bool is_prefix(struct kymo_spec_piece piece)
{
	return piece.start < piece.end && (*piece.start == 'p' || *piece.start == 'r') &&
	       (piece.end == piece.start + 1 || piece.start[1] == ':');
}

static struct kymo_error *parse_prefix(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	struct kymo_spec_piece event = { piece.start + 2, piece.end };
	struct kymo_error *error;
	const char *slash;

	spec->is_return |= *piece.start == 'r';
	if (piece.end == piece.start + 1)
		return NULL;
	slash = memchr(event.start, '/', (size_t)(event.end - event.start));
	if (slash) {
		error = copy_name(text, (struct kymo_spec_piece){ event.start, slash }, "the group", &spec->group);
		if (error)
			return error;
		event.start = slash + 1;
	}
	return copy_name(text, event, "the event", &spec->event);
}

/* The "+" or "-" that starts the offset, or the end. A "-" in a set of a glob, or before a letter, belongs to the name.
 */
static const char *find_offset(struct kymo_spec_piece location)
{
	bool in_set = false;

	for (const char *c = location.start; c < location.end; c++) {
		const char *behind = in_set ? c : kymo_name_skip(location.start, c, location.end);

		if (behind > c)
			c = behind - 1;
		else if (*c == '\\')
			c++;
		else if (*c == '[')
			in_set = true;
		else if (*c == ']')
			in_set = false;
		else if (!in_set && (*c == '+' || (*c == '-' && c + 1 < location.end && kymo_spec_is_digit(c[1]))))
			return c;
	}
	return location.end;
}

static struct kymo_error *parse_offset(const char *text, struct kymo_spec_piece piece, int64_t *ret)
{
	bool negative = *piece.start == '-', sign = negative || *piece.start == '+';
	const char *digits = piece.start + sign, *end;
	uint64_t value = 0;

	if (!kymo_spec_number(digits, piece.end, &end, &value)) {
		if (digits < piece.end && kymo_spec_is_digit(*digits))
			return kymo_error_at(text, digits, "the offset does not fit in 64 bits");
		return kymo_error_at(text, digits, "expected a number after '%c', such as +0x12", *piece.start);
	}
	if (end < piece.end && *end == '(')
		return kymo_error_at(text, end, "reference counters are not supported yet; leave '(...)' out");
	if (end < piece.end)
		return kymo_error_at(text, end, "'%.*s' is not a number; write 18 or 0x12", (int)(piece.end - digits),
				     digits);
	if (value > INT64_MAX)
		return kymo_error_at(text, digits, "the offset does not fit in 64 bits");
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return NULL;
}

/* What does not go together with the "+" or "-" at `offset`. */
static struct kymo_error *check_offset(const char *text, const char *offset, const struct kymo_spec *spec)
{
	if (kymo_is_glob(spec->symbol))
		return kymo_error_at(text, offset, "an offset requires the name of one function, not a glob");
	if (spec->every_instruction)
		return kymo_error_at(text, offset,
				     "':*' is each instruction of a function; leave the offset or ':*' out");
	if (spec->is_return && spec->offset)
		return kymo_error_at(text, offset,
				     "a return probe is for a whole function; leave the offset out, or record this "
				     "location with -p");
	return NULL;
}

static struct kymo_error *parse_within_file(const char *text, struct kymo_spec_piece location, struct kymo_spec *spec)
{
	struct kymo_error *error;
	const char *offset;

	if (location.start == location.end)
		return kymo_error_at(text, location.start,
				     "expected a function, a glob or a file offset, such as malloc, "
				     "'mem*' or 0x1234");
	if (kymo_spec_is_digit(*location.start) && spec->every_instruction)
		return kymo_error_at(text, location.start, "':*' requires the name of a function, or a glob");
	if (kymo_spec_is_digit(*location.start))
		return parse_offset(text, location, &spec->offset);
	offset = find_offset(location);
	if (offset == location.start)
		return kymo_error_at(text, offset,
				     "expected a function before '%c'; a file offset is written without a sign",
				     *offset);
	spec->symbol = unquote((struct kymo_spec_piece){ location.start, offset });
	if (!spec->symbol)
		return &kymo_error_no_memory;
	if (offset == location.end)
		return NULL;
	error = check_offset(text, offset, spec);
	if (!error)
		error = parse_offset(text, (struct kymo_spec_piece){ offset, location.end }, &spec->offset);
	return error ? error : check_offset(text, offset, spec);
}

/* Take "%return" off the end of the location. */
static void take_return(struct kymo_spec_piece *location, struct kymo_spec *spec)
{
	const size_t size = (size_t)(location->end - location->start), n = strlen("%return");

	if (size < n || memcmp(location->end - n, "%return", n) != 0 ||
	    (size > n && location->end[-(ptrdiff_t)n - 1] == '\\'))
		return;
	spec->is_return = true;
	location->end -= n;
}

/* Whether this goes on the name of a file, and is no function. Those of Go have the path of a package, and a dot after
 * it: "encoding/json.Marshal". */
static bool is_path(struct kymo_spec_piece piece)
{
	const char *slash = memrchr(piece.start, '/', (size_t)(piece.end - piece.start)), *so;
	size_t size = slash ? (size_t)(piece.end - slash) : 0;

	if (!slash || !memchr(slash, '.', size))
		return slash;
	so = memmem(slash, size, ".so", 3);
	return so && (so + 3 == piece.end || so[3] == '.');
}

/* Take ":*" off the end of FILE ":" SYMBOL ":*". A path before it is of a file whose name has a colon: it stands for
 * all of its functions. */
static void take_every(struct kymo_spec_piece *piece, struct kymo_spec *spec)
{
	const char *colon = find_colon(*piece);
	struct kymo_spec_piece rest = { piece->start, colon };

	if (!colon || piece->end - colon != 2 || colon[1] != '*')
		return;
	colon = find_colon(rest);
	if (!colon || colon == rest.start || colon + 1 == rest.end ||
	    is_path((struct kymo_spec_piece){ colon + 1, rest.end }))
		return;
	spec->every_instruction = true;
	*piece = rest;
}

/* Whether the piece, which has no ":", is an address. */
static bool is_address(struct kymo_spec_piece piece)
{
	return piece.end - piece.start > 1 && piece.start[0] == '0' && (piece.start[1] == 'x' || piece.start[1] == 'X');
}

static struct kymo_error *parse_address(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	const char *end;
	uint64_t address = 0;

	if (spec->is_return)
		return kymo_error_at(
			text, piece.start,
			"a return probe is for a whole function, and nothing says where one at an address ends; "
			"record the instructions by which it is left with -p");
	if (kymo_spec_number(piece.start, piece.end, &end, &address) && end < piece.end)
		return kymo_error_at(text, end, "'%.*s' is not an address; write 0x7f3c12345678",
				     (int)(piece.end - piece.start), piece.start);
	if (!address || address >= ADDRESS_END)
		return kymo_error_at(text, piece.start, "no program has code at this address");
	spec->address = address;
	return NULL;
}

static struct kymo_error *parse_location(const char *text, struct kymo_spec_piece piece, char prefix,
					 struct kymo_spec *spec)
{
	const char *colon;

	if (piece.start == piece.end)
		return kymo_error_at(text, piece.start, "expected FILE:FUNCTION, such as libc:malloc");
	if (spec->event && kymo_spec_is_arg(piece))
		return kymo_error_at(text, piece.start,
				     "expected FILE:FUNCTION after '%c:%s'; a program called %c is written "
				     "./%c:%s",
				     prefix, spec->event, prefix, prefix, spec->event);
	take_return(&piece, spec);
	take_every(&piece, spec);
	take_return(&piece, spec);
	if (spec->every_instruction && spec->is_return)
		return kymo_error_at(text, piece.end,
				     "a return probe is for a whole function; leave ':*' out, or record each "
				     "instruction with -p");
	colon = find_colon(piece);
	if (!colon && is_address(piece))
		return parse_address(text, piece, spec);
	if (!colon && memmem(piece.start, (size_t)(piece.end - piece.start), "::", 2))
		return kymo_error_at(
			text, piece.start,
			"expected the file before the function, such as ./app:shop::Cart::add; '::' is part of a name");
	if (!colon && (size_t)(piece.end - piece.start) == strspn(piece.start, "0123456789"))
		return kymo_error_at(text, piece.start,
				     "a process is given by --pid %.*s; a probe is written libc:malloc",
				     (int)(piece.end - piece.start), piece.start);
	if (!colon)
		return kymo_error_at(text, piece.end,
				     "expected ':' and a function after the file, such as libc:malloc");
	if (colon == piece.start)
		return kymo_error_at(text, colon, "expected a program or library before ':', such as libc:malloc");
	spec->file = unquote((struct kymo_spec_piece){ piece.start, colon });
	if (!spec->file)
		return &kymo_error_no_memory;
	return parse_within_file(text, (struct kymo_spec_piece){ colon + 1, piece.end }, spec);
}

static struct kymo_error *parse(const char *text, struct kymo_spec *spec)
{
	struct kymo_spec_piece piece;
	struct kymo_error *error = NULL;
	const char *at = text;
	char kind = 'p';

	spec->text = strdup(text);
	if (!spec->text)
		return &kymo_error_no_memory;
	piece = next_location(&at);
	if (is_prefix(piece)) {
		struct kymo_spec_piece prefix = piece;

		kind = *prefix.start;
		error = parse_prefix(text, prefix, spec);
		if (error)
			return error;
		piece = next_location(&at);
		if (piece.start == piece.end)
			return kymo_error_at(text, prefix.end,
					     "expected FILE:FUNCTION after '%.*s'; a program called %c is "
					     "written ./%c:FUNCTION",
					     (int)(prefix.end - prefix.start), prefix.start, kind, kind);
	}
	error = parse_location(text, piece, kind, spec);
	return error ? error : kymo_spec_values_parse(text, at, spec);
}

/* Make it empty; what is left says whether it needed names of the source. */
static void fail_spec(struct kymo_spec *spec)
{
	const bool needs_names = spec->needs_names;

	kymo_spec_deinit(spec);
	spec->needs_names = needs_names;
}

/* With an error `spec` is as fail_spec() leaves it. */
static struct kymo_error *parse_into(const char *text, struct kymo_spec *spec)
{
	struct kymo_error *error;

	if (strlen(text) > KYMO_SPEC_TEXT_MAX)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "a probe is written in at most %d characters, this one has %zu",
					 KYMO_SPEC_TEXT_MAX, strlen(text));
	error = parse(text, spec);
	if (error)
		fail_spec(spec);
	spec->scope = NULL;
	return error;
}

static struct kymo_error *parse_as(const char *text, bool is_return, struct kymo_spec *ret)
{
	struct kymo_spec spec = { .is_return = is_return };
	struct kymo_error *error = parse_into(text, &spec);

	if (error)
		return error;
	*ret = spec;
	return NULL;
}

struct kymo_error *kymo_spec_parse(const char *text, struct kymo_spec *ret)
{
	return parse_as(text, false, ret);
}

/* Take over what is no part of the text. */
static struct kymo_error *add_values(const struct kymo_spec *spec, const struct kymo_spec_scope *scope,
				     struct kymo_spec *named)
{
	struct kymo_error *error = NULL;
	size_t at;

	named->scope = scope;
	named->aggregated = spec->aggregated;
	for (size_t i = 0; i < spec->n_values && !error; i++)
		error = kymo_spec_add_value(named, spec->values[i].text, spec->values[i].text + spec->values[i].start,
					    spec->values[i].text + spec->values[i].end, &at);
	named->scope = NULL;
	named->is_paired = spec->is_paired;
	named->shares_sample = spec->shares_sample;
	named->waits = spec->waits;
	named->is_limited = spec->is_limited;
	return error;
}

struct kymo_error *kymo_spec_name(struct kymo_spec *spec, const struct kymo_spec_scope *scope, const char *build_id)
{
	struct kymo_spec named = { .is_return = spec->is_return, .scope = scope };
	struct kymo_error *error = parse_into(spec->text, &named);

	if (!error) {
		error = add_values(spec, scope, &named);
		if (error)
			fail_spec(&named);
	}
	if (error) {
		spec->needs_names |= named.needs_names;
		return error;
	}
	named.needs_names = false;
	snprintf(named.build_id, sizeof(named.build_id), "%s", build_id);
	named.source = spec->source;
	named.typed = spec->typed;
	spec->source = NULL;
	spec->typed = NULL;
	kymo_spec_deinit(spec);
	*spec = named;
	return NULL;
}

struct kymo_error *kymo_spec_add_value(struct kymo_spec *spec, const char *text, const char *start, const char *end,
				       size_t *ret)
{
	struct kymo_spec_value *value = &spec->values[spec->n_values];
	struct kymo_error *error;
	char *copy;

	if (spec->n_args == KYMO_EVENT_MAX_ARGS - 1) /* one is left for the stack pointer */
		return kymo_error_at(text, start, "a probe has at most %d arguments and values for aggregations",
				     KYMO_EVENT_MAX_ARGS - 1);
	copy = strdup(text);
	if (!copy)
		return &kymo_error_no_memory;
	error = kymo_spec_arg_compute(text, (struct kymo_spec_piece){ start, end }, spec);
	if (error) {
		free(copy);
		return error;
	}
	*value = (struct kymo_spec_value){ copy, (size_t)(start - text), (size_t)(end - text) };
	spec->n_values++;
	kymo_spec_writes_last(spec);
	*ret = kymo_spec_first_value(spec) + spec->n_values - 1;
	return NULL;
}

size_t kymo_spec_first_value(const struct kymo_spec *spec)
{
	size_t n = spec->n_args;

	while (n && spec->args[n - 1].fetch.writes == KYMO_WRITE_MEMORY)
		n--;
	return n - spec->n_values;
}

struct kymo_error *kymo_spec_entry_of(const struct kymo_spec *spec, struct kymo_spec *ret)
{
	const char *at = spec->text;
	struct kymo_spec_piece location = next_location(&at);
	struct kymo_spec unused = { .text = NULL };
	kymo_cleanup_free char *text = NULL;

	if (is_prefix(location))
		location = next_location(&at);
	take_return(&location, &unused);
	text = strndup(location.start, (size_t)(location.end - location.start));
	return text ? parse_as(text, false, ret) : &kymo_error_no_memory;
}

struct kymo_error *kymo_spec_parse_return(const char *text, struct kymo_spec *ret)
{
	return parse_as(text, true, ret);
}

void kymo_spec_deinit(struct kymo_spec *spec)
{
	free(spec->text);
	free(spec->typed);
	free(spec->group);
	free(spec->event);
	free(spec->marker);
	free(spec->syscalls);
	free(spec->file);
	free(spec->symbol);
	free(spec->source);
	free(spec->filter);
	for (size_t i = 0; i < spec->n_args; i++) {
		free(spec->args[i].name);
		free(spec->args[i].form);
		kymo_naming_release(spec->args[i].naming);
		kymo_shape_release(spec->args[i].shape);
		free(spec->args[i].cut);
		free(spec->args[i].target);
	}
	for (size_t i = 0; i < spec->n_values; i++)
		free(spec->values[i].text);
	memset(spec, 0, sizeof(*spec));
}
