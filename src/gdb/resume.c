#include "gdb/resume.h"

#include "gdb/nonstop.h"
#include "gdb/registers.h"
#include "gdb/run.h"
#include "gdb/signals.h"
#include "gdb/stop.h"
#include "gdb/thread.h"

struct action {
	struct gdb_id who;
	struct gdb_resumption how;
	bool is_stop;
};

static const struct action *find_any_action(const struct action *actions, size_t n, const struct gdb_thread *thread)
{
	for (size_t i = 0; i < n && !thread->is_untold && !thread->is_dead; i++)
		if (gdb_id_includes(&actions[i].who, thread))
			return &actions[i];
	return NULL;
}

/* NULL: the thread stays where it is. */
static const struct action *find_action(const struct action *actions, size_t n, const struct gdb_thread *thread)
{
	const struct action *action = find_any_action(actions, n, thread);

	return action && !action->is_stop ? action : NULL;
}

static void note_what_goes(struct kymo_gdb *gdb, const struct action *actions, size_t n)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		gdb->threads.items[i]->is_let_go = find_action(actions, n, gdb->threads.items[i]);
}

/* An event that waits to be told is told, and nothing runs. */
static bool is_any_pending(const struct kymo_gdb *gdb, const struct action *actions, size_t n)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (find_action(actions, n, gdb->threads.items[i]) && gdb_check_pending(gdb->threads.items[i]))
			return true;
	return gdb->ends.n > 0 || gdb->is_interrupted;
}

/* Nothing runs. What the client wanted threads to get they get when they do. */
static void tell_first(struct kymo_gdb *gdb, const struct action *actions, size_t n)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];
		const struct action *action = find_action(actions, n, thread);

		if (action)
			gdb_keep_signal(thread, action->how.signal);
	}
	gdb_change_state(gdb, GDB_TELLS_FIRST);
	gdb_wake(gdb);
}

/* Non-stop: what a thread does already it goes on doing. */
static void resume_each(struct kymo_gdb *gdb, const struct action *actions, size_t n)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];
		const struct action *action = find_any_action(actions, n, thread);

		if (action && action->is_stop)
			gdb_stop_one(thread, 0);
		else if (action && gdb_is_known_to_stand(thread))
			gdb_resume(thread, &action->how);
	}
	gdb_note_done(gdb);
	gdb_begin_notifying(gdb);
	gdb_interrupt_one(gdb);
	gdb_wake(gdb);
}

static void resume(struct kymo_gdb *gdb, const struct action *actions, size_t n, struct gdb_text *reply)
{
	size_t n_resumed = 0;

	if (gdb->is_non_stop) {
		resume_each(gdb, actions, n);
		gdb_text_put(reply, "OK");
		return;
	}
	note_what_goes(gdb, actions, n);
	if (is_any_pending(gdb, actions, n)) {
		tell_first(gdb, actions, n);
		return;
	}
	gdb_change_state(gdb, GDB_RESUMED);
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];
		const struct action *action = find_action(actions, n, thread);

		if (!action)
			continue;
		gdb_resume(thread, &action->how);
		n_resumed++;
	}
	gdb_note_done(gdb);
	if (n_resumed)
		return;
	gdb_change_state(gdb, GDB_NONE_RESUMED);
	gdb_text_put(reply, "E01");
}

static bool take_signal(struct gdb_words *words, int *ret)
{
	int signal;

	if (!gdb_take_int(words, &signal))
		return false;
	*ret = gdb_signal_to(signal);
	return true;
}

/* "c", "C05", "s", "S05", "r1000,1010", "t". */
static bool take_how(struct gdb_words *words, struct action *action)
{
	struct gdb_resumption *how = &action->how;

	if (gdb_take_char(words, 'c'))
		return true;
	if (gdb_take_char(words, 'C'))
		return take_signal(words, &how->signal);
	how->is_step = true;
	if (gdb_take_char(words, 's'))
		return true;
	if (gdb_take_char(words, 'S'))
		return take_signal(words, &how->signal);
	if (gdb_take_char(words, 'r'))
		return gdb_take_number(words, &how->range_start) && gdb_take_char(words, ',') &&
		       gdb_take_number(words, &how->range_end);
	action->is_stop = true;
	return gdb_take_char(words, 't');
}

static bool take_action(struct gdb_words *words, struct action *ret)
{
	*ret = (struct action){ .who = { -1, -1 } };
	return take_how(words, ret) && (!gdb_take_char(words, ':') || gdb_take_id(words, &ret->who));
}

void gdb_continue_as_told(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	/* As many as a packet holds: gdb names each thread where some of a process stay as they are. */
	KYMO_VEC(struct action) actions = { 0 };
	struct action action;
	bool is_good;

	do {
		is_good = take_action(words, &action) && kymo_vec_push(&actions, action);
	} while (is_good && gdb_take_char(words, ';'));
	if (is_good && gdb_words_are_over(words))
		resume(gdb, actions.items, actions.n, reply);
	else
		gdb_text_put(reply, "E01");
	kymo_vec_deinit(&actions);
}

/* By the older packets: the thread of Hc steps or gets the signal. Where Hc means all threads, or was not sent, that is
 * the thread of Hg or of the last stop, and the others go on. */
static void resume_old(struct kymo_gdb *gdb, bool is_step, int signal, struct gdb_words *words, struct gdb_text *reply)
{
	const bool is_for_one = gdb->running.tid > 0;
	struct gdb_thread *thread = gdb_thread_of(gdb, is_for_one ? &gdb->running : &gdb->general);
	struct action actions[2] = { { .how = { .is_step = is_step, .signal = signal } },
				     { .who = { gdb->running.pid, -1 } } };
	uint64_t pc;

	if (!thread) {
		gdb_text_put(reply, "E03");
		return;
	}
	if (!gdb_words_are_over(words) && (!gdb_take_number(words, &pc) || gdb_set_pc(thread, pc))) {
		gdb_text_put(reply, "E01");
		return;
	}
	actions[0].who = (struct gdb_id){ thread->process->pid, thread->tid };
	resume(gdb, actions, is_for_one ? 1 : 2, reply);
}

void gdb_continue(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	resume_old(gdb, false, 0, words, reply);
}

void gdb_step(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	resume_old(gdb, true, 0, words, reply);
}

static void resume_with_signal(struct kymo_gdb *gdb, bool is_step, struct gdb_words *words, struct gdb_text *reply)
{
	int signal;

	if (!take_signal(words, &signal) || (!gdb_words_are_over(words) && !gdb_take_char(words, ';')))
		gdb_text_put(reply, "E01");
	else
		resume_old(gdb, is_step, signal, words, reply);
}

void gdb_continue_with_signal(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	resume_with_signal(gdb, false, words, reply);
}

void gdb_step_with_signal(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	resume_with_signal(gdb, true, words, reply);
}
