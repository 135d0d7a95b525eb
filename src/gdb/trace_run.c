#include "gdb/trace_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/breakpoints.h"
#include "gdb/btrace.h"
#include "gdb/registers.h"
#include "gdb/thread.h"
#include "gdb/trace_variables.h"

/* ---- breakpoints of tracepoints -------------------------------------------------------------- */

static bool is_of_run(const struct gdb_tracing *tracing, const struct gdb_thread *thread)
{
	return !thread->is_dead && thread->process->pid == tracing->pid;
}

/* Those of a client, and those of other tracepoints at the same address, stay. */
static void take_out(struct kymo_gdb *gdb, uint64_t address)
{
	const struct gdb_tracing *tracing = &gdb->tracing;

	for (size_t i = 0; i < gdb->threads.n && !gdb_traces_at(tracing, tracing->pid, address); i++)
		if (is_of_run(tracing, gdb->threads.items[i]))
			gdb_remove_at(gdb->threads.items[i], address);
}

bool gdb_trace_begin_point(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	const struct gdb_tracing *tracing = &gdb->tracing;

	if (!tracing->is_running || !point->is_enabled || point->is_in)
		return true;
	if (point->n_steps && gdb_has_recording(tracing->pid))
		return false;
	for (size_t i = 0; i < gdb->threads.n; i++) {
		if (!is_of_run(tracing, gdb->threads.items[i]) || !gdb_insert_at(gdb->threads.items[i], point->address))
			continue;
		take_out(gdb, point->address);
		return false;
	}
	point->is_in = true;
	return true;
}

void gdb_trace_end_point(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	if (!point->is_in)
		return;
	point->is_in = false;
	take_out(gdb, point->address);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void take_all_out(struct kymo_gdb *gdb)
{
	struct gdb_tracing *tracing = &gdb->tracing;

	for (size_t i = 0; i < tracing->points.n; i++)
		gdb_trace_end_point(gdb, tracing->points.items[i]);
	for (size_t i = 0; i < gdb->threads.n; i++)
		gdb->threads.items[i]->trace_steps.n = 0;
}

void gdb_trace_end_run(struct kymo_gdb *gdb, enum gdb_trace_end end, unsigned int number, const char *failure)
{
	if (!gdb->tracing.is_running)
		return;
	take_all_out(gdb);
	gdb_trace_note_end(&gdb->tracing, end, number, failure);
}

void gdb_trace_lose_client(struct kymo_gdb *gdb)
{
	gdb->tracing.has_selected = false;
	if (!gdb->tracing.is_disconnected)
		gdb_trace_end_run(gdb, GDB_TRACE_DISCONNECTED, 0, NULL);
}

void gdb_forget_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_tracing *tracing = &gdb->tracing;

	gdb_trace_end_run(gdb, GDB_TRACE_STOPPED, 0, NULL);
	gdb_trace_free_points(tracing);
	gdb_reset_trace_variables(tracing);
	gdb_trace_buffer_deinit(&tracing->buffer);
	tracing->regions.n = 0;
	tracing->has_selected = false;
	tracing->end = GDB_TRACE_NEVER_RUN;
	tracing->start_us = tracing->stop_us = 0;
	gdb_text_put(reply, "OK");
}

static bool insert_all(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->tracing.points.n; i++)
		if (!gdb_trace_begin_point(gdb, gdb->tracing.points.items[i]))
			return false;
	return true;
}

static void begin_points(struct gdb_tracing *tracing)
{
	for (size_t i = 0; i < tracing->points.n; i++)
		tracing->points.items[i]->n_hits = tracing->points.items[i]->n_bytes = 0;
	for (size_t i = 0; i < tracing->variables.n; i++)
		tracing->variables.items[i].value = tracing->variables.items[i].initial;
}

static size_t size_of_buffer(const struct gdb_tracing *tracing)
{
	return tracing->buffer_size ? tracing->buffer_size : GDB_TRACE_BUFFER_DEFAULT;
}

/* All tracepoints are inserted, or none is. */
static bool start(struct kymo_gdb *gdb)
{
	const struct gdb_thread *thread = gdb_memory_thread(gdb);
	struct gdb_tracing *tracing = &gdb->tracing;

	gdb_trace_end_run(gdb, GDB_TRACE_STOPPED, 0, NULL);
	tracing->has_selected = false;
	if (!thread || !gdb_trace_buffer_begin(&tracing->buffer, size_of_buffer(tracing), gdb_register_block_size(gdb),
					       tracing->is_circular))
		return false;
	begin_points(tracing);
	tracing->pid = thread->process->pid;
	tracing->has_executed = false;
	tracing->is_running = true;
	tracing->start_us = gdb_trace_now_us();
	tracing->stop_us = 0;
	if (insert_all(gdb))
		return true;
	gdb_trace_end_run(gdb, GDB_TRACE_FAILED, 0, "a tracepoint cannot be inserted");
	return false;
}

void gdb_start_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_text_put(reply, start(gdb) ? "OK" : "E01");
}

void gdb_stop_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_trace_end_run(gdb, GDB_TRACE_STOPPED, 0, NULL);
	gdb_text_put(reply, "OK");
}

/* ---- its status ------------------------------------------------------------------------------ */

static void put_text(struct gdb_text *reply, const char *text)
{
	gdb_text_hex(reply, text ? text : "", text ? strlen(text) : 0);
}

static void tell_end(const struct gdb_tracing *tracing, struct gdb_text *reply)
{
	switch (tracing->end) {
	case GDB_TRACE_NEVER_RUN:
		gdb_text_put(reply, ";tnotrun:0");
		return;
	case GDB_TRACE_STOPPED:
		gdb_text_format(reply, ";tstop:%s:0", tracing->stop_notes ? tracing->stop_notes : "");
		return;
	case GDB_TRACE_FULL:
		gdb_text_put(reply, ";tfull:0");
		return;
	case GDB_TRACE_DISCONNECTED:
		gdb_text_put(reply, ";tdisconnected:0");
		return;
	case GDB_TRACE_PASSED:
		gdb_text_format(reply, ";tpasscount:%x", tracing->end_point);
		return;
	case GDB_TRACE_FAILED:
		gdb_text_put(reply, ";terror:");
		put_text(reply, tracing->failure);
		gdb_text_format(reply, ":%x", tracing->end_point);
		return;
	}
}

void gdb_tell_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_tracing *tracing = &gdb->tracing;
	const struct gdb_trace_buffer *buffer = &tracing->buffer;
	const size_t size = tracing->is_running ? buffer->size : size_of_buffer(tracing);
	const size_t used = gdb_trace_buffer_used(buffer);

	gdb_text_put(reply, tracing->is_running ? "T1" : "T0");
	if (!tracing->is_running)
		tell_end(tracing, reply);
	gdb_text_format(reply, ";tframes:%zx;tcreated:%" PRIx64 ";tfree:%zx;tsize:%zx;circular:%x;disconn:%x",
			gdb_trace_buffer_count(buffer), buffer->n_created, used < size ? size - used : 0, size,
			tracing->is_circular, tracing->is_disconnected);
	gdb_text_format(reply, ";starttime:%" PRIx64 ";stoptime:%" PRIx64 ";username:%s;notes:%s", tracing->start_us,
			tracing->stop_us, tracing->user ? tracing->user : "", tracing->notes ? tracing->notes : "");
}

/* ---- settings -------------------------------------------------------------------------------- */

static void take_bool(struct gdb_words *words, bool *ret, struct gdb_text *reply)
{
	const bool is_on = gdb_take_char(words, '1'), is_good = is_on || gdb_take_char(words, '0');

	if (is_good && gdb_words_are_over(words))
		*ret = is_on;
	gdb_text_put(reply, is_good && gdb_words_are_over(words) ? "OK" : "E01");
}

void gdb_set_circular(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	take_bool(words, &gdb->tracing.is_circular, reply);
	gdb->tracing.buffer.is_circular = gdb->tracing.is_circular;
}

void gdb_set_disconnected(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	take_bool(words, &gdb->tracing.is_disconnected, reply);
}

/* -1: the default size. */
void gdb_set_buffer_size(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	uint64_t size = 0;

	if (gdb->tracing.is_running || (!gdb_take_text(words, "-1") && (!gdb_take_number(words, &size) || !size)) ||
	    !gdb_words_are_over(words) || size > GDB_TRACE_BUFFER_MAX) {
		gdb_text_put(reply, "E01");
		return;
	}
	gdb->tracing.buffer_size = (size_t)size;
	gdb_text_put(reply, "OK");
}

/* "user:HEX;notes:HEX;tstop:HEX;". */
static bool take_note(struct gdb_tracing *tracing, struct gdb_words note)
{
	char text[GDB_TRACE_NOTE_MAX + 1], **to = NULL;
	const char *digits;

	if (gdb_take_text(&note, "user:"))
		to = &tracing->user;
	else if (gdb_take_text(&note, "notes:"))
		to = &tracing->notes;
	else if (gdb_take_text(&note, "tstop:"))
		to = &tracing->stop_notes;
	digits = note.at;
	if (!to || !gdb_take_hex_string(&note, text, sizeof(text)) || !gdb_words_are_over(&note))
		return false;
	free(*to);
	*to = strndup(digits, (size_t)(note.end - digits));
	return true;
}

void gdb_take_notes(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	bool is_good = true;

	while (is_good && !gdb_words_are_over(words))
		is_good = take_note(&gdb->tracing, gdb_take_until(words, ';'));
	gdb_text_put(reply, is_good ? "OK" : "E01");
}

/* ":start,end:start,end". */
void gdb_take_regions(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_tracing *tracing = &gdb->tracing;
	struct gdb_trace_region region;
	bool is_good = true;

	tracing->regions.n = 0;
	while (is_good && !gdb_words_are_over(words))
		is_good = gdb_take_char(words, ':') && gdb_take_number(words, &region.start) &&
			  gdb_take_char(words, ',') && gdb_take_number(words, &region.end) &&
			  tracing->regions.n < GDB_TRACE_REGIONS_MAX && kymo_vec_push(&tracing->regions, region);
	if (!is_good)
		tracing->regions.n = 0;
	gdb_text_put(reply, is_good ? "OK" : "E01");
}

void gdb_tell_smallest(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_text_put(reply, "1");
}
