#include "gdb/tracepoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/trace_run.h"

enum {
	NUMBER_MAX = 0xffff,
	MEMORY_MAX = 1 << 30,
	STEPS_MAX = 1 << 30,
	ACTIONS_MAX = 4096,
};

/* ---- which one ------------------------------------------------------------------------------- */

static struct gdb_tracepoint *find_point(const struct gdb_tracing *tracing, unsigned int number, uint64_t address)
{
	for (size_t i = 0; i < tracing->points.n; i++)
		if (tracing->points.items[i]->number == number && tracing->points.items[i]->address == address)
			return tracing->points.items[i];
	return NULL;
}

/* "number:address". */
static bool take_name(struct gdb_words *words, unsigned int *number, uint64_t *address)
{
	uint64_t value;

	if (!gdb_take_number(words, &value) || !value || value > NUMBER_MAX || !gdb_take_char(words, ':') ||
	    !gdb_take_number(words, address))
		return false;
	*number = (unsigned int)value;
	return true;
}

/* NULL: the packet names none. */
static struct gdb_tracepoint *take_point(const struct kymo_gdb *gdb, struct gdb_words *words)
{
	unsigned int number;
	uint64_t address;

	return take_name(words, &number, &address) ? find_point(&gdb->tracing, number, address) : NULL;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Whether the client may define so much more. */
static bool take_room(struct gdb_tracing *tracing, const struct gdb_words *words)
{
	const size_t n = gdb_words_left(words) + 1;

	if (n > GDB_TRACE_TEXT_MAX - tracing->n_text)
		return false;
	tracing->n_text += n;
	return true;
}

/* Text as another client is told it: "A1:401136:" and the words. */
static bool keep_piece(struct gdb_tracepoint *point, char kind, const struct gdb_words *words)
{
	char *piece;

	if (asprintf(&piece, "%c%x:%" PRIx64 ":%.*s", kind, point->number, point->address, (int)gdb_words_left(words),
		     words->at) < 0)
		return false;
	if (kymo_vec_push(&point->pieces, piece))
		return true;
	free(piece);
	return false;
}

/* "length,bytes". */
static bool take_code(struct gdb_words *words, uint8_t **code, size_t *size)
{
	uint64_t n;
	uint8_t *bytes;

	if (!gdb_take_number(words, &n) || !n || n > gdb_words_left(words) / 2 || !gdb_take_char(words, ','))
		return false;
	bytes = malloc((size_t)n);
	if (!bytes || !gdb_take_hex(words, bytes, (size_t)n)) {
		free(bytes);
		return false;
	}
	*code = bytes;
	*size = (size_t)n;
	return true;
}

/* ---- actions --------------------------------------------------------------------------------- */

/* "Rmask". All registers are collected, whatever the mask has. */
static bool take_mask(struct gdb_words *words)
{
	uint8_t byte;
	size_t n = 0;

	while (gdb_take_hex(words, &byte, 1))
		n++;
	return n > 0;
}

/* "Mbase,offset,length". */
static bool take_memory(struct gdb_words *words, struct gdb_trace_action *action)
{
	uint64_t base = UINT32_MAX;

	if ((!gdb_take_text(words, "-1") && !gdb_take_number(words, &base)) || !gdb_take_char(words, ',') ||
	    !gdb_take_number(words, &action->address) || !gdb_take_char(words, ',') ||
	    !gdb_take_number(words, &action->size) || action->size > MEMORY_MAX ||
	    (base != UINT32_MAX && base > KYMO_REGISTERS_MAX))
		return false;
	action->base = base == UINT32_MAX ? -1 : (int)base;
	return true;
}

static bool take_action(struct gdb_words *words, struct gdb_tracepoint *point)
{
	struct gdb_trace_action action = { .is_of_step = point->has_step_part };
	bool is_good = false;
	size_t size = 0;

	if (gdb_take_char(words, 'R')) {
		is_good = take_mask(words);
	} else if (gdb_take_char(words, 'M')) {
		action.what = GDB_COLLECTS_MEMORY;
		is_good = take_memory(words, &action);
	} else if (gdb_take_char(words, 'X')) {
		action.what = GDB_COLLECTS_EXPRESSION;
		is_good = take_code(words, &action.code, &size);
		action.size = size;
	}
	if (is_good && point->actions.n < ACTIONS_MAX && kymo_vec_push(&point->actions, action))
		return true;
	free(action.code);
	return false;
}

/* "number:address:[S]actions[-]". */
static bool take_actions(struct kymo_gdb *gdb, struct gdb_words *words)
{
	struct gdb_tracepoint *point = take_point(gdb, words);
	struct gdb_words text;

	if (!point || !gdb_take_char(words, ':') || gdb_words_are_over(words) || point->is_whole ||
	    !take_room(&gdb->tracing, words))
		return false;
	point->is_whole = words->end[-1] != '-';
	words->end -= !point->is_whole;
	if (gdb_take_char(words, 'S'))
		point->has_step_part = true;
	text = *words;
	while (!gdb_words_are_over(words))
		if (!take_action(words, point)) {
			point->is_enabled = false; /* it would collect what is not wanted */
			return false;
		}
	return keep_piece(point, point->has_step_part ? 'S' : 'A', &text) &&
	       (!point->is_whole || !gdb_trace_begin_point(gdb, point));
}

/* ---- tracepoints ----------------------------------------------------------------------------- */

/* ":F5", ":S", ":X3,220127". */
static bool take_option(struct gdb_words *words, struct gdb_tracepoint *point)
{
	if (!gdb_take_char(words, ':'))
		return false;
	if (gdb_take_char(words, 'F')) {
		point->kind = 'F';
		return gdb_take_number(words, &point->fast_size);
	}
	if (gdb_take_char(words, 'S')) {
		point->kind = 'S';
		return true;
	}
	return !point->condition && gdb_take_char(words, 'X') &&
	       take_code(words, &point->condition, &point->condition_size);
}

/* "enabled:steps:passes", options, "-". */
static bool take_definition(struct gdb_words *words, struct gdb_tracepoint *point)
{
	point->is_enabled = gdb_take_char(words, 'E');
	if ((!point->is_enabled && !gdb_take_char(words, 'D')) || !gdb_take_char(words, ':') ||
	    !gdb_take_number(words, &point->n_steps) || point->n_steps > STEPS_MAX || !gdb_take_char(words, ':') ||
	    !gdb_take_number(words, &point->n_passes))
		return false;
	while (!gdb_words_are_over(words) && *words->at != '-')
		if (!take_option(words, point))
			return false;
	point->is_whole = !gdb_take_char(words, '-');
	return gdb_words_are_over(words);
}

static struct gdb_tracepoint *add_point(struct gdb_tracing *tracing, unsigned int number, uint64_t address)
{
	struct gdb_tracepoint *point = tracing->points.n < GDB_TRACEPOINTS_MAX ? calloc(1, sizeof(*point)) : NULL;

	if (!point || !kymo_vec_push(&tracing->points, point)) {
		free(point);
		return NULL;
	}
	point->number = number;
	point->address = address;
	return point;
}

/* In a run gdb defines its tracepoints anew where libraries were loaded. It does so for those that are there, too:
 * their counts stay. A definition that is wrong leaves one that is not enabled. */
static bool take_new_point(struct kymo_gdb *gdb, struct gdb_words *words)
{
	struct gdb_tracing *tracing = &gdb->tracing;
	struct gdb_tracepoint *point;
	unsigned int number;
	uint64_t address;

	if (!take_room(tracing, words) || !take_name(words, &number, &address) || !gdb_take_char(words, ':'))
		return false;
	point = find_point(tracing, number, address);
	if (!point)
		point = add_point(tracing, number, address);
	if (!point)
		return false;
	gdb_trace_end_point(gdb, point);
	gdb_trace_clear_point(point);
	if (take_definition(words, point))
		return !point->is_whole || !gdb_trace_begin_point(gdb, point);
	point->is_enabled = false;
	return false;
}

void gdb_define_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const bool is_good = gdb_take_char(words, '-') ? take_actions(gdb, words) : take_new_point(gdb, words);

	gdb_text_put(reply, is_good ? "OK" : "E01");
}

/* ":type:start:length:bytes": kept as it is. */
static bool is_source(struct gdb_words words)
{
	uint64_t start, length;
	uint8_t byte;

	gdb_take_until(&words, ':');
	if (!gdb_take_number(&words, &start) || !gdb_take_char(&words, ':') || !gdb_take_number(&words, &length) ||
	    !gdb_take_char(&words, ':'))
		return false;
	while (gdb_take_hex(&words, &byte, 1))
		;
	return gdb_words_are_over(&words);
}

void gdb_define_source(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_tracepoint *point = take_point(gdb, words);
	const bool is_good = point && gdb_take_char(words, ':') && is_source(*words) &&
			     take_room(&gdb->tracing, words) && keep_piece(point, 'Z', words);

	gdb_text_put(reply, is_good ? "OK" : "E01");
}

static void enable(struct kymo_gdb *gdb, struct gdb_words *words, bool is_enabled, struct gdb_text *reply)
{
	struct gdb_tracepoint *point = take_point(gdb, words);
	bool is_good = point && gdb_words_are_over(words);

	if (is_good) {
		point->is_enabled = is_enabled;
		if (is_enabled)
			is_good = !gdb_trace_begin_point(gdb, point);
		else
			gdb_trace_end_point(gdb, point);
	}
	gdb_text_put(reply, is_good ? "OK" : "E01");
}

void gdb_enable_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	enable(gdb, words, true, reply);
}

void gdb_disable_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	enable(gdb, words, false, reply);
}

/* ---- what is told ---------------------------------------------------------------------------- */

void gdb_tell_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_tracepoint *point;
	unsigned int number;
	uint64_t address;

	if (!take_name(words, &number, &address) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	/* gdb asks for locations, too, at which its condition has no meaning, and which it has not defined. By an error
	 * its user's command would end. */
	point = find_point(&gdb->tracing, number, address);
	if (point)
		gdb_text_format(reply, "V%" PRIx64 ":%" PRIx64, point->n_hits, point->n_bytes);
}

static void tell_definition(const struct gdb_tracepoint *point, struct gdb_text *reply)
{
	gdb_text_format(reply, "T%x:%" PRIx64 ":%c:%" PRIx64 ":%" PRIx64, point->number, point->address,
			point->is_enabled ? 'E' : 'D', point->n_steps, point->n_passes);
	if (point->kind == 'F')
		gdb_text_format(reply, ":F%" PRIx64, point->fast_size);
	else if (point->kind)
		gdb_text_put(reply, ":S");
	if (!point->condition)
		return;
	gdb_text_format(reply, ":X%zx,", point->condition_size);
	gdb_text_hex(reply, point->condition, point->condition_size);
}

void gdb_next_piece(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_tracing *tracing = &gdb->tracing;
	const struct gdb_tracepoint *point;

	if (tracing->next_point < tracing->points.n &&
	    tracing->next_piece > tracing->points.items[tracing->next_point]->pieces.n) {
		tracing->next_point++;
		tracing->next_piece = 0;
	}
	if (tracing->next_point >= tracing->points.n) {
		gdb_text_put(reply, "l");
		return;
	}
	point = tracing->points.items[tracing->next_point];
	if (tracing->next_piece)
		gdb_text_put(reply, point->pieces.items[tracing->next_piece - 1]);
	else
		tell_definition(point, reply);
	tracing->next_piece++;
}

void gdb_first_piece(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb->tracing.next_point = gdb->tracing.next_piece = 0;
	gdb_next_piece(gdb, words, reply);
}
