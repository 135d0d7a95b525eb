#include "gdb/run.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gdb/breakpoints.h"
#include "gdb/btrace.h"
#include "gdb/hits.h"
#include "gdb/registers.h"
#include "gdb/stop.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/trace_hits.h"

/* ---- going on -------------------------------------------------------------------------------- */

/* What the thread was told with it, where that is this signal. */
static siginfo_t info_of(const struct gdb_thread *thread, int signal)
{
	siginfo_t info = { .si_signo = signal, .si_code = SI_USER };

	if (thread->info.si_signo == signal)
		return thread->info;
	info.si_pid = getpid();
	info.si_uid = getuid();
	return info;
}

void gdb_keep_signal(struct gdb_thread *thread, int signal)
{
	if (!signal)
		return;
	if (thread->kept.si_signo)
		kymo_engine_inject(thread->engine, &thread->kept);
	thread->kept = info_of(thread, signal);
}

/* Of a thread that may stand before a signal which the client was told: this one, or none. What was kept comes too. */
static void settle_signal(struct gdb_thread *thread, int signal)
{
	siginfo_t info = thread->kept;

	if (signal && thread->kept.si_signo)
		kymo_engine_inject(thread->engine, &thread->kept);
	if (signal)
		info = info_of(thread, signal);
	thread->kept.si_signo = 0;
	if (info.si_signo)
		gdb_btrace_expect_signal(thread, info.si_signo);
	if (thread->is_at_signal && !kymo_engine_set_signal(thread->engine, info.si_signo, &info))
		info.si_signo = 0;
	if (info.si_signo)
		kymo_engine_inject(thread->engine, &info);
	thread->is_at_signal = false;
}

/* A step over an instruction that is not left to a step. Whether it is done by that. */
static bool is_done(struct gdb_thread *thread)
{
	return gdb_btrace_pop(thread) &&
	       (thread->btrace->now.pc < thread->range_start || thread->btrace->now.pc >= thread->range_end);
}

/* Where its step begins. The end of a vfork is told before the call has returned, as gdb knows it. A step that begins
 * there leads out of the call. */
static bool is_in_range(const struct gdb_thread *thread)
{
	return thread->step_pc >= thread->range_start && thread->step_pc < thread->range_end;
}

void gdb_resume(struct gdb_thread *thread, const struct gdb_resumption *how)
{
	struct user_regs_struct registers;

	gdb_btrace_look_again(thread);
	settle_signal(thread, how->signal);
	gdb_leave_call(thread);
	gdb_hit_again(thread);
	gdb_set_telling(thread, GDB_NOTHING_TO_TELL);
	thread->is_stopped = thread->is_asked = thread->is_stuck = thread->is_owed = false;
	thread->is_stepping = how->is_step;
	thread->range_start = how->range_start;
	thread->range_end = how->range_end;
	if (how->is_step && !kymo_engine_get_registers(thread->engine, &registers))
		thread->step_pc = registers.rip;
	thread->is_return_due = thread->owes_return && gdb_catches_call(thread, thread->returned);
	thread->is_step_done = !thread->is_return_due && how->is_step &&
			       ((thread->owes_return && !is_in_range(thread)) || is_done(thread));
	thread->owes_return = false;
	if (thread->is_return_due || thread->is_step_done) {
		thread->is_stopped = true;
		return;
	}
	if (kymo_engine_control(thread->engine, how->is_step ? gdb_btrace_step(thread) : gdb_trace_action(thread)) ==
	    -ESRCH)
		thread->is_dead = true; /* its end is about to be told */
}

/* What has happened already, and is told as the next event. */
static void note_due(struct gdb_thread *thread, const struct gdb_event *event, int code)
{
	thread->is_step_done = thread->is_return_due = false;
	thread->info = (siginfo_t){ .si_signo = SIGTRAP, .si_code = code };
	gdb_note(thread, event);
}

void gdb_note_done(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];
		const struct gdb_event step = { .kind = GDB_EVENT_STEP, .signal = SIGTRAP }, end = {
			.kind = GDB_EVENT_RETURN, .signal = SIGTRAP, .number = thread->returned
		};

		if (thread->is_step_done)
			note_due(thread, &step, TRAP_TRACE);
		else if (thread->is_return_due)
			note_due(thread, &end, SIGTRAP);
	}
}

bool gdb_check_pending(struct gdb_thread *thread)
{
	struct user_regs_struct registers;

	if (thread->telling != GDB_PENDING || thread->is_dead)
		return false;
	if (thread->event.kind != GDB_EVENT_BREAK)
		return true;
	if (gdb_has_breakpoint(thread->process, thread->event.address) &&
	    !kymo_engine_get_registers(thread->engine, &registers) && registers.rip == thread->event.address)
		return true;
	gdb_set_telling(thread, GDB_NOTHING_TO_TELL);
	return false;
}

/* As gdbserver has it: without QProgramSignals, what gdb does not pass by default is dropped. A function that gdb calls
 * ends in SIGSEGV, where gdb has its breakpoint on the stack. Then gdb writes what the thread had before that, and a
 * thread that gets SIGSEGV now would die of it. */
static int signal_at_detach(const struct gdb_thread *thread)
{
	const int signal = thread->event.kind == GDB_EVENT_SIGNAL ? thread->info.si_signo : 0;

	if (signal <= 0 || signal > SIGRTMAX)
		return 0; /* of a client's own making */
	if (!thread->gdb->knows_for_program)
		return signal == SIGTRAP || signal == SIGINT ? 0 : signal;
	return thread->gdb->for_program & 1ull << (signal - 1) ? signal : 0;
}

/* A signal that the client was not told is the program's, as it came; what it wanted the thread to have, it gets. A
 * launched program that has yet to begin does so. */
void gdb_settle_for_good(struct gdb_thread *thread)
{
	const siginfo_t kept = thread->kept;

	if (thread->is_at_signal && gdb_was_told(thread))
		settle_signal(thread, kept.si_signo ? 0 : signal_at_detach(thread));
	else if (kept.si_signo)
		kymo_engine_inject(thread->engine, &kept);
	thread->kept.si_signo = 0;
	gdb_leave_call(thread);
	thread->is_settling &= thread->event.kind == GDB_EVENT_INTERRUPT;
	gdb_set_telling(thread, GDB_NOTHING_TO_TELL);
	thread->is_at_signal = thread->is_stepping = thread->is_untold = thread->is_owed = thread->owes_return = false;
}

/* A thread that makes a step now is not asked for another one: its callback would not take that back. A stop that was
 * asked for is undone, and is reported nevertheless: what the thread does next is said then. */
static void let_run(struct gdb_thread *thread)
{
	const bool stands = thread->is_stopped, was_asked = thread->is_asked;

	if (stands)
		gdb_btrace_look_again(thread);
	gdb_settle_for_good(thread);
	thread->is_stopped = thread->is_asked = thread->is_stuck = false;
	if (stands || was_asked || !gdb_btrace_is_walked(thread))
		kymo_engine_control(thread->engine, stands ? gdb_trace_action(thread) : KYMO_ACTION_RESUME);
}

void gdb_let_run(struct kymo_gdb *gdb, const struct gdb_process *process)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_dead && (!process || thread->process == process))
			let_run(thread);
	}
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Of threads that the client has let go on: the others stand for it, and cannot have stopped. */
static struct gdb_thread *find_pending(const struct kymo_gdb *gdb)
{
	struct gdb_thread *found = NULL;

	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_let_go || !gdb_check_pending(thread))
			continue;
		if (thread->event.kind == GDB_EVENT_STEP)
			return thread; /* what the client waits for first */
		found = found ? found : thread;
	}
	return found;
}

void gdb_tell_thread(struct gdb_thread *thread, struct gdb_text *reply)
{
	gdb_set_telling(thread, GDB_TOLD);
	if (thread->event.kind == GDB_EVENT_FORK || thread->event.kind == GDB_EVENT_VFORK)
		gdb_set_untold(thread->gdb, thread->event.child, false);
	gdb_tell_stop(thread, reply);
}

/* The packets that follow are about this thread. */
static void tell_and_select(struct gdb_thread *thread, struct gdb_text *reply)
{
	struct kymo_gdb *gdb = thread->gdb;

	gdb->general = (struct gdb_id){ thread->process->pid, thread->tid };
	gdb_tell_thread(thread, reply);
}

static void tell_end(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	const struct gdb_end end = gdb->ends.items[0];
	struct gdb_process *process = end.tid ? NULL : gdb_find_process(gdb, end.pid);

	gdb->ends.n--;
	memmove(gdb->ends.items, gdb->ends.items + 1, gdb->ends.n * sizeof(*gdb->ends.items));
	gdb_tell_end(gdb, &end, reply);
	if (process)
		gdb_drop_process(gdb, process);
}

/* No thread of a process is left, and its end is about to be told. */
static bool is_end_coming(const struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->processes.n; i++)
		if (!gdb->processes.items[i]->has_ended && !gdb_any_thread(gdb, gdb->processes.items[i]->pid))
			return true;
	return false;
}

/* A thread that ran has ended, and the others were stopped. Where its process ends, they end a moment later. */
static bool may_end_soon(const struct kymo_gdb *gdb)
{
	return is_end_coming(gdb) || (!gdb->is_interrupted && !gdb->n_ticks);
}

void gdb_forget_stops(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->event.kind == GDB_EVENT_INTERRUPT && thread->telling == GDB_PENDING)
			gdb_set_telling(thread, GDB_NOTHING_TO_TELL);
	}
}

bool gdb_tell_pending_signal(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->event.kind != GDB_EVENT_SIGNAL || !gdb_check_pending(thread))
			continue;
		tell_and_select(thread, reply);
		return true;
	}
	return false;
}

void gdb_tell_standing(struct gdb_thread *thread, int signal, struct gdb_text *reply)
{
	const struct gdb_event was = thread->event;
	const bool is_at_told = was.kind == GDB_EVENT_SIGNAL && thread->is_at_signal;
	const bool waits = gdb_check_pending(thread) && was.kind != GDB_EVENT_INTERRUPT && was.kind != GDB_EVENT_STEP;
	struct kymo_gdb *gdb = thread->gdb;

	if (waits || !is_at_told)
		thread->event = (struct gdb_event){ .kind = GDB_EVENT_INTERRUPT, .signal = signal };
	gdb->general = (struct gdb_id){ thread->process->pid, thread->tid };
	gdb_tell_stop(thread, reply);
	if (waits) {
		thread->event = was;
		return;
	}
	gdb_set_telling(thread, GDB_TOLD);
}

void gdb_tell_stop_of(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = NULL;
	struct gdb_event was;
	struct gdb_id id;

	if (gdb_take_id(words, &id) && gdb_words_are_over(words) && id.tid > 0)
		thread = gdb_thread_of(gdb, &id);
	if (!thread || !thread->is_stopped || gdb->is_non_stop) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (gdb_check_pending(thread) || gdb_was_told(thread)) {
		gdb_tell_thread(thread, reply);
		return;
	}
	was = thread->event;
	thread->event = (struct gdb_event){ .kind = GDB_EVENT_INTERRUPT };
	gdb_tell_stop(thread, reply);
	thread->event = was;
}

/* How well a thread stands for ^C. What it has to tell itself is not lost by that. */
static unsigned int fitness(const struct gdb_thread *thread)
{
	if (thread->is_dead || thread->is_untold || thread->telling == GDB_PENDING)
		return 0;
	return thread->is_let_go && thread->is_asked && thread->is_stopped ? 2 : 1; /* ^C has stopped it, or it stood */
}

/* The general thread, unless another one fits better. */
static struct gdb_thread *find_interrupted(const struct kymo_gdb *gdb)
{
	struct gdb_thread *best = gdb_general_thread(gdb);

	if (!best)
		best = gdb_any_thread(gdb, 0);
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (best && fitness(gdb->threads.items[i]) > fitness(best))
			best = gdb->threads.items[i];
	return best;
}

/* A step that ^C has come to is told as that. */
static struct gdb_thread *interrupt(struct kymo_gdb *gdb, struct gdb_thread *stepped)
{
	struct gdb_thread *thread = stepped ? stepped : find_interrupted(gdb);

	gdb->is_interrupted = false;
	if (!thread)
		return NULL;
	thread->event = (struct gdb_event){ .kind = GDB_EVENT_INTERRUPT, .signal = SIGINT };
	if (!thread->is_at_signal)
		thread->info = (siginfo_t){ .si_signo = SIGINT, .si_code = SI_USER };
	return thread;
}

bool gdb_collect(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	struct gdb_thread *thread;

	if (gdb->state != GDB_STOPPING || !gdb_do_all_stand(gdb))
		return false;
	thread = find_pending(gdb);
	if (!gdb->ends.n && !thread && may_end_soon(gdb))
		return false;
	gdb_change_state(gdb, GDB_ALL_STAND);
	if (gdb->ends.n) {
		tell_end(gdb, reply);
		gdb->is_interrupted &= gdb->threads.n > 0;
		return true;
	}
	if (gdb->is_interrupted && (!thread || thread->event.kind == GDB_EVENT_STEP))
		thread = interrupt(gdb, thread);
	if (thread)
		tell_and_select(thread, reply);
	else if (gdb->has_no_resumed)
		gdb_text_put(reply, "N");
	else
		gdb_text_put(reply, "S00");
	return true;
}
