#include "gdb/breakpoints.h"

#include <errno.h>

#include "gdb/conditions.h"
#include "gdb/pad_notes.h"
#include "gdb/thread.h"
#include "procfs/maps.h"

enum { WATCH_SIZE = 8, WATCHES_MAX = 4 };

static const enum kymo_watch kinds[] = {
	[GDB_BREAK_HARDWARE] = KYMO_WATCH_EXECUTION,
	[GDB_WATCH_WRITE] = KYMO_WATCH_WRITE,
	[GDB_WATCH_ACCESS] = KYMO_WATCH_ACCESS,
};

static bool are_same_breaks(const struct gdb_break *a, const struct gdb_break *b)
{
	return a->type == b->type && a->address == b->address && a->size == b->size;
}

static struct gdb_break *find_break(const struct gdb_process *process, const struct gdb_break *what)
{
	for (size_t i = 0; i < process->breaks.n; i++) {
		struct gdb_break *item = &process->breaks.items[i];

		if (are_same_breaks(item, what))
			return item;
	}
	return NULL;
}

bool gdb_has_breakpoint(const struct gdb_process *process, uint64_t address)
{
	for (size_t i = 0; i < process->breaks.n; i++)
		if (process->breaks.items[i].type == GDB_BREAK_SOFTWARE && process->breaks.items[i].address == address)
			return true;
	return false;
}

bool gdb_has_watches(const struct gdb_process *process)
{
	for (size_t i = 0; i < process->breaks.n; i++)
		if (process->breaks.items[i].type != GDB_BREAK_SOFTWARE)
			return true;
	return false;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void unwatch(struct gdb_thread *thread, const struct gdb_break *what)
{
	size_t n = 0;

	for (size_t i = 0; i < thread->watches.n; i++) {
		const struct gdb_watch *watch = &thread->watches.items[i];

		if (are_same_breaks(&watch->what, what))
			kymo_engine_unwatch(thread->engine, watch->slot); /* of one that runs, when it stops */
		else
			thread->watches.items[n++] = *watch;
	}
	thread->watches.n = n;
}

/* The largest piece at its own alignment that the processor watches. */
static size_t piece(uint64_t address, size_t size)
{
	size_t n = WATCH_SIZE;

	while (n > 1 && (address % n || n > size))
		n /= 2;
	return n;
}

static int watch(struct gdb_thread *thread, const struct gdb_break *what)
{
	for (size_t at = 0; at < what->size;) {
		const size_t n = what->type == GDB_BREAK_HARDWARE ? 1 : piece(what->address + at, what->size - at);
		struct gdb_watch item = { .what = *what };
		int err = kymo_engine_watch(thread->engine, kinds[what->type], what->address + at, n, &item.slot);

		if (!err && !kymo_vec_push(&thread->watches, item)) {
			kymo_engine_unwatch(thread->engine, item.slot);
			err = -ENOMEM;
		}
		if (err) {
			unwatch(thread, what);
			return err;
		}
		at += n;
	}
	return 0;
}

static size_t count_slots(const struct gdb_break *what)
{
	size_t at = 0, n = 0;

	if (what->type == GDB_BREAK_SOFTWARE || what->type == GDB_BREAK_HARDWARE)
		return what->type == GDB_BREAK_HARDWARE;
	for (; at < what->size; n++)
		at += piece(what->address + at, what->size - at);
	return n;
}

/* Of a thread that runs: by its own callback, after a stop of which the client is not told. The step that it makes ends
 * in such a stop already. */
static int watch_soon(struct gdb_thread *thread, const struct gdb_break *what)
{
	const struct gdb_process *process = thread->process;
	size_t n = count_slots(what);

	for (size_t i = 0; i < process->breaks.n; i++)
		n += count_slots(&process->breaks.items[i]);
	if (n > WATCHES_MAX)
		return -ENOSPC;
	thread->needs_watches = true;
	if (!thread->is_asked && !thread->is_stepping)
		kymo_engine_control(thread->engine, KYMO_ACTION_REPORT);
	return 0;
}

/* gdb puts one on the stack, to which functions that it calls return. What runs into that gets SIGSEGV where the stack
 * is no code, which gdb takes for the breakpoint. So nothing need be there. */
static bool is_no_code(const struct gdb_process *process, uint64_t address)
{
	struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(process->pid, &maps);
	const struct kymo_map *map = error ? NULL : kymo_maps_at(&maps, address);
	const bool is_data = map && !map->executable;

	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return is_data;
}

int gdb_insert_at(struct gdb_thread *thread, uint64_t address)
{
	int err;

	if (thread->process->is_narrow)
		return -ENOTSUP;
	err = kymo_engine_insert_breakpoint(thread->engine, address);
	return err == -EEXIST || err == -ESRCH ? 0 : err;
}

static int insert_one(struct gdb_thread *thread, const struct gdb_break *what)
{
	if (thread->process->is_narrow)
		return -ENOTSUP;
	if (what->type != GDB_BREAK_SOFTWARE)
		return thread->gdb->is_non_stop && !thread->is_stopped ? watch_soon(thread, what) : watch(thread, what);
	return gdb_insert_at(thread, what->address);
}

/* A tracepoint may be there, too. */
static void remove_one(struct gdb_thread *thread, const struct gdb_break *what)
{
	if (what->type != GDB_BREAK_SOFTWARE)
		unwatch(thread, what);
	else if (!gdb_traces_at(&thread->gdb->tracing, thread->process->pid, what->address))
		kymo_engine_remove_breakpoint(thread->engine, what->address);
}

void gdb_remove_at(struct gdb_thread *thread, uint64_t address)
{
	if (!gdb_has_breakpoint(thread->process, address))
		kymo_engine_remove_breakpoint(thread->engine, address);
}

static void insert_tracepoints(struct gdb_thread *thread)
{
	const struct gdb_tracing *tracing = &thread->gdb->tracing;

	for (size_t i = 0; i < tracing->points.n && gdb_traces(tracing, thread->process->pid); i++)
		if (tracing->points.items[i]->is_in)
			gdb_insert_at(thread, tracing->points.items[i]->address);
}

void gdb_insert_for(struct gdb_thread *thread)
{
	const struct gdb_process *process = thread->process;

	for (size_t i = 0; i < process->breaks.n; i++)
		if (process->breaks.items[i].type == GDB_BREAK_SOFTWARE)
			insert_one(thread, &process->breaks.items[i]);
	insert_tracepoints(thread);
}

static bool has_watch(const struct gdb_thread *thread, const struct gdb_break *what)
{
	for (size_t i = 0; i < thread->watches.n; i++)
		if (are_same_breaks(&thread->watches.items[i].what, what))
			return true;
	return false;
}

void gdb_watch_missing(struct gdb_thread *thread)
{
	const struct gdb_process *process = thread->process;

	thread->needs_watches = false;
	for (size_t i = 0; i < process->breaks.n && !process->is_narrow; i++)
		if (process->breaks.items[i].type != GDB_BREAK_SOFTWARE &&
		    !has_watch(thread, &process->breaks.items[i]))
			watch(thread, &process->breaks.items[i]);
}

int gdb_watch_kind(const struct gdb_thread *thread, unsigned int slot)
{
	for (size_t i = 0; i < thread->watches.n; i++)
		if (thread->watches.items[i].slot == slot)
			return thread->watches.items[i].what.type;
	return GDB_WATCH_WRITE;
}

void gdb_forget_breakpoints(struct gdb_thread *thread)
{
	thread->process->breaks.n = 0;
	gdb_forget_conditions(thread->process);
	gdb_end_pads(thread->process);
	thread->gdb->tracing.has_executed |= thread->process->pid == thread->gdb->tracing.pid;
	gdb_trace_lose(&thread->gdb->tracing, thread->process->pid, "the process has executed another program");
	thread->watches.n = thread->trace_steps.n = 0;
}

/* ---- a process ------------------------------------------------------------------------------- */

static void remove_from_all(struct kymo_gdb *gdb, const struct gdb_process *process, const struct gdb_break *what)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process == process && !gdb->threads.items[i]->is_dead)
			remove_one(gdb->threads.items[i], what);
}

/* What is no code is that for all threads: with thousands of them, a look at the mappings for each takes seconds. */
static int insert_each(struct kymo_gdb *gdb, const struct gdb_process *process, const struct gdb_break *what)
{
	int err = 0;

	for (size_t i = 0; i < gdb->threads.n && !err; i++)
		if (gdb->threads.items[i]->process == process && !gdb->threads.items[i]->is_dead)
			err = insert_one(gdb->threads.items[i], what);
	return err == -EINVAL && what->type == GDB_BREAK_SOFTWARE && is_no_code(process, what->address) ? 0 : err;
}

/* A breakpoint that is in may have lost its code, and other code be there now. */
static int renew_in_all(struct kymo_gdb *gdb, const struct gdb_process *process, const struct gdb_break *what)
{
	return what->type == GDB_BREAK_SOFTWARE ? insert_each(gdb, process, what) : 0;
}

static int insert_into_all(struct kymo_gdb *gdb, const struct gdb_process *process, const struct gdb_break *what)
{
	const int err = insert_each(gdb, process, what);

	if (err)
		remove_from_all(gdb, process, what);
	return err;
}

void gdb_remove_all(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->processes.n; i++) {
		struct gdb_process *process = gdb->processes.items[i];

		while (process->breaks.n) {
			const struct gdb_break what = process->breaks.items[--process->breaks.n];

			remove_from_all(gdb, process, &what);
		}
		gdb_forget_conditions(process);
	}
}

/* "type,address,kind", up to conditions and commands. */
static bool take_break(struct gdb_words *words, struct gdb_break *ret)
{
	uint64_t size;

	if (!gdb_take_int(words, &ret->type) || !gdb_take_char(words, ',') || !gdb_take_number(words, &ret->address) ||
	    !gdb_take_char(words, ',') || !gdb_take_number(words, &size))
		return false;
	ret->size = ret->type <= GDB_BREAK_HARDWARE ? 1 : size;
	if (!gdb_words_are_over(words) && (ret->type > GDB_BREAK_HARDWARE || *words->at != ';'))
		return false;
	return ret->type <= GDB_BREAK_HARDWARE || (size > 0 && size <= WATCH_SIZE * WATCHES_MAX);
}

/* NULL: the reply says why. The processor cannot watch reads alone. */
static struct gdb_process *process_for(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply,
				       struct gdb_break *what)
{
	const struct gdb_thread *thread = gdb_memory_thread(gdb);

	if (!take_break(words, what)) {
		gdb_text_put(reply, "E01");
		return NULL;
	}
	if (what->type == GDB_WATCH_READ || what->type > GDB_WATCH_ACCESS)
		return NULL;
	if (!thread) {
		gdb_text_put(reply, "E03");
		return NULL;
	}
	return thread->process;
}

void gdb_insert(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_break what;
	struct gdb_process *process = process_for(gdb, words, reply, &what);

	if (!process)
		return;
	if (!gdb_take_conditions(words, process, &what)) {
		gdb_text_put(reply, "E01");
		return;
	}
	gdb_pads_choose(gdb_memory_thread(gdb), &what);
	if (find_break(process, &what)) {
		gdb_text_put(reply, renew_in_all(gdb, process, &what) ? "E01" : "OK");
		return;
	}
	if (!kymo_vec_reserve(&process->breaks, process->breaks.n + 1) || insert_into_all(gdb, process, &what)) {
		gdb_drop_conditions(process, &what);
		gdb_text_put(reply, "E01");
		return;
	}
	kymo_vec_push(&process->breaks, what);
	gdb_text_put(reply, "OK");
}

/* The breakpoint has gone with its memory, of which the client warns. */
static bool has_lost_code(const struct kymo_gdb *gdb, const struct gdb_break *what)
{
	uint8_t byte;

	return what->type == GDB_BREAK_SOFTWARE &&
	       kymo_engine_read(gdb_memory_thread(gdb)->engine, what->address, &byte, 1);
}

void gdb_remove(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_break what, *item;
	struct gdb_process *process = process_for(gdb, words, reply, &what);

	if (!process)
		return;
	item = find_break(process, &what);
	if (item) {
		remove_from_all(gdb, process, &what);
		gdb_drop_conditions(process, &what);
		*item = process->breaks.items[--process->breaks.n];
	}
	gdb_text_put(reply, item && has_lost_code(gdb, &what) ? "E01" : "OK");
}
