#include "gdb/trace_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/breakpoints.h"
#include "gdb/btrace.h"
#include "gdb/pads.h"
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

static const char *problem_of(int err)
{
	switch (err) {
	case -EIO:
		return "nothing is mapped there";
	case -EINVAL:
		return "it is no code, or other processes share its memory";
	case -EBUSY:
		return "another tracer or a recording is in the way: try again later";
	case -ENOSPC:
		return "there are too many breakpoints";
	case -ENOTSUP:
		return "the program is a 32-bit one";
	default:
		return strerror(-err);
	}
}

/* ---- markers that are off -------------------------------------------------------------------- */

/* Other tracers count, too. As with them, a change of another one at the same moment may be lost. */
static bool count(struct kymo_gdb *gdb, uint64_t semaphore, int by)
{
	const struct gdb_thread *thread = gdb_any_thread(gdb, gdb->tracing.pid);
	const uint16_t last = by > 0 ? UINT16_MAX : 0; /* it never goes on from there */
	uint16_t value;

	if (!thread || kymo_engine_read(thread->engine, semaphore, &value, sizeof(value)) || value == last)
		return false;
	value = (uint16_t)(value + by);
	return !kymo_engine_write(thread->engine, semaphore, &value, sizeof(value));
}

/* What is mapped at `address` of the process; of no file: none. */
static struct kymo_map_part part_at(pid_t pid, uint64_t address)
{
	struct kymo_map_part part = { .inode = 0 };
	struct kymo_maps maps = { .n = 0 };
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	const struct kymo_map *map = error ? NULL : kymo_maps_at(&maps, address);

	if (map)
		part = kymo_map_part(map);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return part;
}

static bool is_same_part(const struct kymo_map_part *a, const struct kymo_map_part *b)
{
	return a->inode && a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
	       a->offset == b->offset;
}

/* A static tracepoint whose marker is off unless a tracer counts its semaphore up. */
static bool turn_on(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	const struct gdb_tracing *tracing = &gdb->tracing;
	const struct gdb_marker *marker = point->kind == 'S' && tracing->markers.pid == tracing->pid
						  ? gdb_marker_at(&tracing->markers, point->address)
						  : NULL;

	if (!marker || !marker->semaphore)
		return true;
	point->semaphore_part = part_at(tracing->pid, marker->semaphore);
	if (!point->semaphore_part.inode || !count(gdb, marker->semaphore, 1))
		return false;
	point->semaphore = marker->semaphore;
	return true;
}

/* Where the file was unmapped meanwhile the semaphore is gone, and what lies there now is not. */
static void turn_off(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	struct kymo_map_part now = { .inode = 0 };

	if (point->semaphore)
		now = part_at(gdb->tracing.pid, point->semaphore);
	if (is_same_part(&now, &point->semaphore_part))
		count(gdb, point->semaphore, -1);
	point->semaphore = 0;
}

/* ---- putting them in, and out ---------------------------------------------------------------- */

static const char *insert(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	const struct gdb_tracing *tracing = &gdb->tracing;

	if (point->n_steps && gdb_has_recording(tracing->pid))
		return "it has steps, and the process has probes of a recording in it, whose code cannot be stepped "
		       "through: end that recording ('kymo status' shows it), or take them out by 'kymo detach'";
	for (size_t i = 0; i < gdb->threads.n; i++) {
		const int err = is_of_run(tracing, gdb->threads.items[i])
					? gdb_insert_at(gdb->threads.items[i], point->address)
					: 0;

		if (!err)
			continue;
		take_out(gdb, point->address);
		return problem_of(err);
	}
	if (!turn_on(gdb, point)) {
		take_out(gdb, point->address);
		return "its marker is off, and the semaphore that turns it on cannot be counted up";
	}
	point->is_in = true;
	return NULL;
}

const char *gdb_trace_begin_point(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	return gdb->tracing.is_running && point->is_enabled && !point->is_in ? insert(gdb, point) : NULL;
}

void gdb_trace_end_point(struct kymo_gdb *gdb, struct gdb_tracepoint *point)
{
	if (!point->is_in)
		return;
	point->is_in = false;
	turn_off(gdb, point);
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

/* The user is shown it when threads go on the next time, or at once if some do. */
static void print_losses(struct kymo_gdb *gdb)
{
	const struct gdb_tracing *tracing = &gdb->tracing;

	if (tracing->n_lost)
		gdb_text_format(&gdb->printed.text, "(frames that the trace run has lost: %" PRIu64 ")\n",
				tracing->n_lost);
	if (tracing->n_cut)
		gdb_text_format(&gdb->printed.text,
				"(frames of the trace run without all of their memory: %" PRIu64 ")\n", tracing->n_cut);
}

void gdb_trace_end_run(struct kymo_gdb *gdb, enum gdb_trace_end end, unsigned int number, const char *failure)
{
	if (!gdb->tracing.is_running)
		return;
	take_all_out(gdb);
	print_losses(gdb);
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

static void begin_counts(struct gdb_tracing *tracing)
{
	tracing->n_lost = tracing->n_cut = 0;
	for (size_t i = 0; i < tracing->points.n; i++)
		tracing->points.items[i]->n_hits = tracing->points.items[i]->n_bytes = 0;
	for (size_t i = 0; i < tracing->variables.n; i++)
		tracing->variables.items[i].value = tracing->variables.items[i].initial;
}

static size_t size_of_buffer(const struct gdb_tracing *tracing)
{
	return tracing->buffer_size ? tracing->buffer_size : GDB_TRACE_BUFFER_DEFAULT;
}

/* All tracepoints, or none of them. */
static bool insert_all(struct kymo_gdb *gdb, struct gdb_text *problem)
{
	for (size_t i = 0; i < gdb->tracing.points.n; i++) {
		struct gdb_tracepoint *point = gdb->tracing.points.items[i];
		const char *reason = gdb_trace_begin_point(gdb, point);

		if (!reason)
			continue;
		gdb_text_format(problem, "E.tracepoint %u at 0x%" PRIx64 " cannot be inserted: %s", point->number,
				point->address, reason);
		take_all_out(gdb);
		return false;
	}
	return true;
}

/* Where a run cannot begin, what the last one has left stays as it is. */
static bool begin_run(struct kymo_gdb *gdb, pid_t pid, struct gdb_text *problem)
{
	struct gdb_tracing *tracing = &gdb->tracing;
	struct gdb_trace_buffer buffer = { .size = 0 };
	const pid_t pid_before = tracing->pid;

	if (!gdb_trace_buffer_begin(&buffer, size_of_buffer(tracing), gdb_register_block_size(gdb),
				    tracing->is_circular)) {
		gdb_text_format(problem, "E.there is not enough memory for a trace buffer of %zu bytes",
				size_of_buffer(tracing));
		return false;
	}
	tracing->pid = pid;
	tracing->is_running = true;
	if (!insert_all(gdb, problem)) {
		tracing->is_running = false;
		tracing->pid = pid_before;
		gdb_trace_buffer_deinit(&buffer);
		return false;
	}
	gdb_trace_buffer_deinit(&tracing->buffer);
	tracing->buffer = buffer;
	return true;
}

static bool start(struct kymo_gdb *gdb, struct gdb_text *problem)
{
	const struct gdb_thread *thread = gdb_memory_thread(gdb);
	struct gdb_tracing *tracing = &gdb->tracing;

	gdb_trace_end_run(gdb, GDB_TRACE_STOPPED, 0, NULL);
	if (!thread) {
		gdb_text_put(problem, "E.there is no process to trace");
		return false;
	}
	if (gdb_pads_are_reached(gdb, thread->process->pid)) {
		gdb_text_put(problem,
			     "E.conditions of breakpoints cannot be taken out of the threads yet, as a thread is "
			     "before a signal or in a call: let the process go on, and try again");
		return false;
	}
	if (!begin_run(gdb, thread->process->pid, problem))
		return false;
	begin_counts(tracing);
	tracing->has_selected = tracing->has_executed = false;
	tracing->start_us = gdb_trace_now_us();
	tracing->stop_us = 0;
	return true;
}

void gdb_start_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	if (start(gdb, reply))
		gdb_text_put(reply, "OK");
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
	gdb_text_format(reply, ";lost:%" PRIx64 ";cut:%" PRIx64, tracing->n_lost, tracing->n_cut);
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
