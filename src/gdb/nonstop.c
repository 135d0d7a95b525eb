/*
 * Threads that are stopped and resumed each for itself. What is to be told is not copied: the queue is the events of
 * threads and the ends of processes, by their order. docs/internals/gdb.md, "States in non-stop".
 */
#include "gdb/nonstop.h"

#include <string.h>

#include "gdb/end.h"
#include "gdb/run.h"
#include "gdb/stop.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/wait.h"
#include "hub/hub.h"
#include "procfs/threads.h"

enum { STOP_MS = 60000 };

/* ---- the queue ------------------------------------------------------------------------------- */

static bool is_fork(const struct gdb_thread *thread)
{
	return thread->event.kind == GDB_EVENT_FORK || thread->event.kind == GDB_EVENT_VFORK;
}

/* A forked child is stopped before its fork is reported. */
static bool is_due(const struct gdb_thread *thread)
{
	const struct gdb_thread *child;

	if (thread->telling != GDB_PENDING || thread->is_dead || thread->is_untold)
		return false;
	child = is_fork(thread) ? gdb_any_thread(thread->gdb, thread->event.child) : NULL;
	return !child || child->is_stopped;
}

static struct gdb_thread *find_new_thread(const struct kymo_gdb *gdb)
{
	struct gdb_thread *found = NULL;

	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if ((!found || thread->order < found->order) && is_due(thread))
			found = thread;
	}
	return found;
}

/* They are in order. */
static struct gdb_end *find_new_end(const struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->ends.n; i++)
		if (!gdb->ends.items[i].is_sent)
			return &gdb->ends.items[i];
	return NULL;
}

/* Some threads are stopped, and no thread runs. Threads of a process that is ending stand no more. */
static bool does_none_run(const struct kymo_gdb *gdb)
{
	if (gdb_does_any_run(gdb))
		return false;
	for (size_t i = 0; i < gdb->threads.n; i++) {
		const struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_dead && kymo_thread_state(thread->tid, thread->tid) == 't')
			return true;
	}
	return false;
}

/* The oldest event of the queue. False: it is empty. */
static bool tell_next(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	struct gdb_thread *thread = find_new_thread(gdb);
	struct gdb_end *end = find_new_end(gdb);

	if (end && (!thread || end->order < thread->order)) {
		end->is_sent = true;
		gdb_tell_end(gdb, end, reply);
	} else if (thread) {
		gdb->sent_child = is_fork(thread) ? thread->event.child : 0;
		gdb_tell_thread(thread, reply);
		gdb_set_telling(thread, GDB_SENT);
	} else if (gdb->is_unresumed) {
		gdb->is_unresumed = false;
		if (!gdb->has_no_resumed || !does_none_run(gdb))
			return false;
		gdb_text_put(reply, "N");
	} else {
		return false;
	}
	gdb->is_in_sequence = true;
	return true;
}

bool gdb_notify(struct kymo_gdb *gdb, struct gdb_text *text)
{
	const size_t before = text->n;

	if (!gdb->is_non_stop || !gdb->may_notify || gdb->is_in_sequence)
		return false;
	gdb_text_put(text, "Stop:");
	if (tell_next(gdb, text))
		return true;
	text->n = before;
	return false;
}

/* ---- acknowledging --------------------------------------------------------------------------- */

/* Whether a process has gone with them. */
static bool forget_sent_ends(struct kymo_gdb *gdb)
{
	bool has_dropped = false;
	size_t n = 0;

	for (size_t i = 0; i < gdb->ends.n; i++) {
		const struct gdb_end end = gdb->ends.items[i];
		struct gdb_process *process = end.tid ? NULL : gdb_find_process(gdb, end.pid);

		if (!end.is_sent) {
			gdb->ends.items[n++] = end;
		} else if (process) {
			gdb_drop_process(gdb, process);
			has_dropped = true;
		}
	}
	gdb->ends.n = n;
	return has_dropped;
}

struct acknowledge {
	struct kymo_gdb *gdb;
	struct gdb_text *reply;
	bool has_dropped;
};

static void acknowledge(void *data)
{
	struct acknowledge *it = data;
	struct kymo_gdb *gdb = it->gdb;

	gdb->is_in_sequence = false;
	gdb->sent_child = 0;
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->telling == GDB_SENT)
			gdb_set_telling(gdb->threads.items[i], GDB_TOLD);
	it->has_dropped = forget_sent_ends(gdb);
	gdb->is_interrupted &= gdb->threads.n > 0;
	if (gdb->may_notify && tell_next(gdb, it->reply))
		return;
	gdb_text_put(it->reply, "OK");
	gdb->is_over |= gdb->is_non_stop && !gdb->processes.n && !gdb->is_extended;
}

void gdb_acknowledge(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct acknowledge it = { .gdb = gdb, .reply = reply };

	kymo_hub_run(gdb->hub, acknowledge, &it);
	if (it.has_dropped)
		gdb_wait_for_ended(gdb);
}

bool gdb_is_known_to_stand(const struct gdb_thread *thread)
{
	return !thread->is_dead && thread->is_stopped && thread->telling != GDB_PENDING &&
	       thread->telling != GDB_SENT && thread->process->pid != thread->gdb->sent_child;
}

/* ---- what stands ----------------------------------------------------------------------------- */

/* A signal that the thread stands before is told again, any other event is not. */
static void queue_standing(struct gdb_thread *thread)
{
	if (thread->event.kind != GDB_EVENT_SIGNAL || !thread->is_at_signal)
		thread->event = (struct gdb_event){ .kind = GDB_EVENT_INTERRUPT };
	thread->order = ++thread->gdb->last_order;
	gdb_set_telling(thread, GDB_PENDING);
}

void gdb_begin_notifying(struct kymo_gdb *gdb)
{
	if (!gdb->is_non_stop || gdb->may_notify)
		return;
	gdb->may_notify = true;
	gdb_wake(gdb);
}

/* The sequence is over, and was not acknowledged. */
static void cancel_sequence(struct kymo_gdb *gdb)
{
	gdb->is_in_sequence = false;
	gdb->sent_child = 0;
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->telling != GDB_SENT)
			continue;
		gdb_set_telling(thread, GDB_PENDING);
		/* The client may have seen the fork; the stub tells it again. */
		if (is_fork(thread))
			gdb_set_untold(gdb, thread->event.child, true);
	}
	for (size_t i = 0; i < gdb->ends.n; i++)
		gdb->ends.items[i].is_sent = false;
}

/* What stands only because the client has come goes on, but for one thread. A launched process has waited for it. */
static bool goes_on(const struct gdb_thread *thread, bool is_first)
{
	return !thread->gdb->may_notify && !is_first && !thread->process->is_launched && !thread->is_at_signal;
}

void gdb_tell_standing_ones(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	bool is_first;

	cancel_sequence(gdb);
	is_first = !find_new_thread(gdb);
	gdb->was_asked = true;
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->is_dead || thread->is_untold || !thread->is_stopped || thread->telling == GDB_PENDING)
			continue;
		if (goes_on(thread, is_first))
			gdb_resume(thread, &(struct gdb_resumption){ 0 });
		else
			queue_standing(thread);
		is_first = false;
	}
	if (!tell_next(gdb, reply))
		gdb_text_put(reply, "OK");
}

void gdb_take_interrupt(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_begin_notifying(gdb);
	if (gdb->is_non_stop)
		gdb_interrupt(gdb);
	gdb_text_put(reply, "OK");
}

/* ---- QNonStop -------------------------------------------------------------------------------- */

/* Threads that were asked to stop before, and sleep where nothing wakes them, are told when they do. */
static void begin_non_stop(void *data)
{
	struct kymo_gdb *gdb = data;

	if (gdb->is_non_stop)
		return;
	gdb->is_non_stop = true;
	gdb_change_state(gdb, GDB_BEGAN_NON_STOP);
	gdb->may_notify = gdb->was_asked = gdb->is_in_sequence = gdb->is_unresumed = gdb->is_interrupted = false;
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (!gdb->threads.items[i]->is_untold)
			gdb_stop_one(gdb->threads.items[i], 0);
}

void gdb_end_non_stop(struct kymo_gdb *gdb)
{
	gdb->is_non_stop = gdb->may_notify = gdb->is_unresumed = gdb->is_interrupted = false;
	cancel_sequence(gdb);
	gdb_forget_stops(gdb);
	for (size_t i = 0; i < gdb->threads.n; i++)
		gdb->threads.items[i]->is_owed = false;
}

static void begin_all_stop(void *data)
{
	struct kymo_gdb *gdb = data;

	if (!gdb->is_non_stop)
		return;
	gdb_end_non_stop(gdb);
	gdb_stop_all(gdb);
}

void gdb_set_non_stop(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const bool is_on = gdb_take_char(words, '1');

	if ((!is_on && !gdb_take_char(words, '0')) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	kymo_hub_run(gdb->hub, is_on ? begin_non_stop : begin_all_stop, gdb);
	if (!is_on && !gdb_wait_for_stop(gdb, STOP_MS, gdb->ends_waits)) {
		kymo_hub_run(gdb->hub, begin_non_stop, gdb);
		gdb_text_put(reply, "E01");
		return;
	}
	if (!is_on)
		kymo_hub_run(gdb->hub, gdb_be_stopped, gdb);
	gdb_text_put(reply, "OK");
}
