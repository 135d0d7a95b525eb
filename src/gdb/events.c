/*
 * Callbacks of the engines. They note what has happened, and return whether the thread stays stopped. The main thread
 * tells it to the client, when all threads do.
 */
#include "gdb/events.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/trap.h"
#include "base/cleanup.h"
#include "gdb/breakpoints.h"
#include "gdb/btrace.h"
#include "gdb/hits.h"
#include "gdb/run.h"
#include "gdb/stop.h"
#include "gdb/thread.h"
#include "gdb/trace_hits.h"
#include "procfs/info.h"

enum { IDLE_LISTS = 100 };

/* ---- stops ----------------------------------------------------------------------------------- */

static bool is_in_range(const struct gdb_thread *thread, uint64_t pc)
{
	return pc >= thread->range_start && pc < thread->range_end;
}

/* A step is done, or something else has stopped the thread meanwhile: it has moved, or it has not. */
static unsigned int stepped(struct gdb_thread *thread)
{
	const struct gdb_event event = { .kind = GDB_EVENT_STEP, .signal = SIGTRAP };
	struct user_regs_struct registers;
	const bool is_known = !kymo_engine_get_registers(thread->engine, &registers);

	if (thread->is_asked && is_known &&
	    (registers.rip == thread->step_pc || (thread->is_owed && is_in_range(thread, registers.rip)))) {
		gdb_stand(thread);
		return KYMO_ACTION_STOP;
	}
	while (!thread->is_asked && is_known && is_in_range(thread, registers.rip)) {
		thread->step_pc = registers.rip;
		if (!gdb_btrace_pop(thread) || kymo_engine_get_registers(thread->engine, &registers))
			return gdb_btrace_step(thread);
	}
	memset(&thread->info, 0, sizeof(thread->info));
	thread->info.si_signo = SIGTRAP;
	thread->info.si_code = TRAP_TRACE;
	gdb_note(thread, &event);
	return KYMO_ACTION_STOP;
}

static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct gdb_thread *thread = data;

	if (thread->is_dead)
		return KYMO_ACTION_RESUME;
	gdb_btrace_see(thread, event);
	gdb_trace_stepped(thread, event);
	if (event)
		return KYMO_ACTION_RESUME;
	if (thread->needs_watches)
		gdb_watch_missing(thread);
	if (thread->is_settling) {
		const struct gdb_event was = thread->event;

		thread->is_settling = false;
		if (!thread->gdb->is_client && was.kind != GDB_EVENT_INTERRUPT)
			return gdb_trace_action(thread);
		gdb_note(thread, &was);
		return KYMO_ACTION_STOP;
	}
	if (thread->is_stopped)
		return KYMO_ACTION_STOP;
	if (thread->is_stepping)
		return stepped(thread);
	if (!thread->is_asked)
		return gdb_trace_action(thread);
	gdb_stand(thread);
	return KYMO_ACTION_STOP;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* A breakpoint where nothing can be executed, such as a stack: gdb calls functions so that they return there. */
static bool is_by_break(const struct gdb_thread *thread, int signal)
{
	struct user_regs_struct registers;

	return (signal == SIGSEGV || signal == SIGILL) && thread->process->breaks.n &&
	       !kymo_engine_get_registers(thread->engine, &registers) &&
	       gdb_has_breakpoint(thread->process, registers.rip);
}

/* A step of the client's would end in a handler. gdb is told, and goes past that. */
static bool is_for_program(const struct gdb_thread *thread, int signal)
{
	return !thread->gdb->is_client ||
	       ((thread->gdb->passed & 1ull << (signal - 1)) && !thread->is_stepping && !is_by_break(thread, signal));
}

/* A step of the client's goes on, too. */
static enum kymo_action go_on(struct gdb_thread *thread)
{
	return thread->is_stepping ? gdb_btrace_step(thread) : gdb_trace_action(thread);
}

/* Where the program has an int3 of its own, gdb goes past it: the client's breakpoint there stands for that. */
static void go_past_own(struct gdb_thread *thread, uint64_t address)
{
	struct user_regs_struct registers;
	uint8_t byte;

	if (kymo_engine_read(thread->engine, address, &byte, 1) || byte != KYMO_TRAP_BYTE ||
	    kymo_engine_get_registers(thread->engine, &registers))
		return;
	kymo_trap_set(&registers, address);
	kymo_engine_set_registers(thread->engine, &registers);
}

static unsigned int trapped(struct gdb_thread *thread, const struct kymo_signal_report *report)
{
	const bool is_break = report->trap == KYMO_TRAP_BREAKPOINT;
	const bool is_traced = is_break && gdb_trace_hit(thread, report->address);
	struct gdb_event event = { .signal = SIGTRAP, .address = report->address };
	int type;

	if (is_break)
		gdb_btrace_note_told(thread, report->address);
	if (is_traced && !gdb_has_breakpoint(thread->process, report->address))
		return go_on(thread);
	if (!thread->gdb->is_client)
		return gdb_trace_action(thread);
	event.kind = is_break ? GDB_EVENT_BREAK : GDB_EVENT_WATCH;
	if (event.kind == GDB_EVENT_WATCH)
		event.watch = gdb_watch_kind(thread, report->slot);
	type = is_break ? GDB_BREAK_SOFTWARE : event.watch;
	if (!gdb_condition_holds(thread, type, report->address) || gdb_run_commands(thread, type, report->address)) {
		if (is_break)
			go_past_own(thread, report->address);
		return go_on(thread);
	}
	thread->info = report->info;
	gdb_note(thread, &event);
	return KYMO_ACTION_STOP;
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct gdb_thread *thread = data;
	struct gdb_event event = { .kind = GDB_EVENT_SIGNAL, .signal = report->info.si_signo };

	if (report->trap)
		return trapped(thread, report);
	if (thread->is_settling) /* its exec is told first, which is later than this */
		return KYMO_ACTION_REPORT | KYMO_SIGNAL_REQUEUE;
	if (event.signal <= 0 || is_for_program(thread, event.signal)) {
		if (report->kind == KYMO_EVENT_SIGNAL)
			gdb_btrace_expect_signal(thread, event.signal);
		return go_on(thread) | report->verdict;
	}
	thread->info = report->info;
	thread->is_at_signal = true;
	gdb_note(thread, &event);
	return KYMO_ACTION_STOP | report->verdict;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static unsigned int called(struct gdb_thread *thread, enum gdb_event_kind kind, uint64_t number)
{
	const struct gdb_event event = { .kind = kind, .signal = SIGTRAP, .number = number };

	if (!gdb_catches_call(thread, number))
		return go_on(thread);
	gdb_note(thread, &event);
	return KYMO_ACTION_STOP;
}

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *report)
{
	return called(data, GDB_EVENT_ENTRY, report->number);
}

static unsigned int on_return(struct kymo_engine *engine, void *data, enum kymo_action action,
			      const struct kymo_syscall_report *report)
{
	const struct gdb_event done = { .kind = GDB_EVENT_VFORK_DONE, .signal = SIGTRAP };
	struct gdb_thread *thread = data;
	struct user_regs_struct registers;

	if (thread->is_vforking) { /* vfork returns when the child has executed something, or has ended */
		thread->is_vforking = false;
		gdb_set_mask(thread);
		if (thread->gdb->is_client && thread->gdb->has_vforks) {
			thread->owes_return = !kymo_engine_get_registers(engine, &registers);
			thread->returned = report->is_entry_known ? report->number : registers.orig_rax;
			gdb_note(thread, &done);
			return KYMO_ACTION_STOP;
		}
	}
	return report->is_entry_known ? called(thread, GDB_EVENT_RETURN, report->number) : go_on(thread);
}

/* ---- children -------------------------------------------------------------------------------- */

static bool is_running(const struct kymo_gdb *gdb)
{
	return !gdb->is_client || gdb->state == GDB_RUNNING;
}

static void begin_thread(struct gdb_thread *maker, pid_t tid, bool is_sharer)
{
	struct kymo_gdb *gdb = maker->gdb;
	struct gdb_thread *thread;

	if (gdb_follow(gdb, maker->process, tid, &thread))
		return;
	thread->is_sharer = is_sharer;
	thread->is_let_go = true;
	gdb_insert_for(thread);
	if (gdb_has_watches(maker->process)) {
		thread->needs_watches = true;
		kymo_engine_control(thread->engine, KYMO_ACTION_REPORT);
	}
	if (!is_running(gdb)) {
		thread->is_asked = true;
		kymo_engine_control(thread->engine, KYMO_ACTION_STOP);
	} else if (gdb->is_client && gdb->wants_threads) {
		thread->event = (struct gdb_event){ .kind = GDB_EVENT_CREATED, .signal = SIGTRAP };
		thread->is_settling = true;
		kymo_engine_control(thread->engine, KYMO_ACTION_REPORT);
	}
}

/* The child is stopped until the client says what to do with it. */
static unsigned int forked(struct gdb_thread *maker, const struct kymo_clone_report *report)
{
	const bool is_vfork = report->kind == KYMO_CLONE_VFORK;
	const struct gdb_event event = { .kind = is_vfork ? GDB_EVENT_VFORK : GDB_EVENT_FORK,
					 .signal = SIGTRAP,
					 .child = report->child };
	struct kymo_gdb *gdb = maker->gdb;
	struct gdb_process *process;
	struct gdb_thread *thread;

	/* The end of a vfork is looked for, as the maker can't be stopped before. */
	if (gdb->is_client && is_vfork) {
		maker->is_vforking = true;
		gdb_set_mask(maker);
	}
	if (!gdb->is_client || !(is_vfork ? gdb->has_vforks : gdb->has_forks))
		return go_on(maker);
	process = gdb_add_process(gdb, report->child);
	if (!process)
		return go_on(maker);
	if (gdb_follow(gdb, process, report->child, &thread)) {
		gdb_drop_process(gdb, process);
		return go_on(maker);
	}
	process->is_launched = maker->process->is_launched;
	memcpy(process->symbols, maker->process->symbols, sizeof(process->symbols));
	process->n_symbols = maker->process->n_symbols;
	thread->is_asked = thread->is_untold = true;
	kymo_engine_control(thread->engine, KYMO_ACTION_STOP);
	gdb_note(maker, &event);
	return KYMO_ACTION_STOP;
}

/* As gdb has it without a stub, a process that is made so is a thread of its maker's. */
static bool shares_memory(const struct gdb_thread *maker, const struct kymo_clone_report *report)
{
	return report->kind == KYMO_CLONE_PROCESS && kymo_compare_memory(maker->tid, report->child) == 0;
}

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct gdb_thread *maker = data;
	const bool is_sharer = shares_memory(maker, report);

	if (report->kind != KYMO_CLONE_THREAD && !is_sharer)
		return forked(maker, report);
	begin_thread(maker, report->child, is_sharer);
	return go_on(maker);
}

static void let_go_of(struct gdb_thread *thread)
{
	gdb_settle_for_good(thread);
	kymo_engine_control(thread->engine, KYMO_ACTION_DETACH);
	gdb_forget_thread(thread->gdb, thread);
}

/* They have another program than the process, and run it freely. */
static void let_sharers_go(struct kymo_gdb *gdb, const struct gdb_process *process)
{
	for (size_t i = gdb->threads.n; i-- > 0;)
		if (gdb->threads.items[i]->is_sharer && gdb->threads.items[i]->process == process)
			let_go_of(gdb->threads.items[i]);
}

/* A thread that ran has ended, and the client has let no other thread run. */
static void look_whether_any_runs(struct kymo_gdb *gdb, const struct gdb_process *process)
{
	if (gdb->is_client && gdb->state == GDB_RUNNING && gdb_any_thread(gdb, gdb->is_non_stop ? 0 : process->pid) &&
	    !gdb_does_any_run(gdb)) {
		gdb->is_unresumed = gdb->is_non_stop;
		if (!gdb->is_non_stop)
			gdb_stop_all(gdb);
	}
	gdb_look_whether_all_stand(gdb);
}

/* Told when the call has returned: registers are the program's own then. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct gdb_thread *thread = data;
	struct gdb_process *process = thread->process;
	const bool is_start = process->execs_left && !--process->execs_left;

	if (thread->is_sharer) {
		struct kymo_gdb *gdb = thread->gdb;

		let_go_of(thread);
		look_whether_any_runs(gdb, process);
		return KYMO_ACTION_DETACH;
	}
	let_sharers_go(thread->gdb, process);
	thread->tid = kymo_engine_tid(engine);
	process->is_narrow = gdb_is_narrow(process->pid);
	gdb_forget_breakpoints(thread);
	gdb_btrace_forget(thread);
	process->n_symbols = 0;
	if (process->execs_left || (!is_start && (!thread->gdb->is_client || !thread->gdb->has_execs)))
		return go_on(thread);
	thread->event =
		(struct gdb_event){ .kind = is_start ? GDB_EVENT_INTERRUPT : GDB_EVENT_EXEC, .signal = SIGTRAP };
	thread->is_settling = true;
	return KYMO_ACTION_REPORT;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void note_end(struct kymo_gdb *gdb, pid_t pid, pid_t tid, int status)
{
	const struct gdb_end end = { .pid = pid, .tid = tid, .status = status, .order = ++gdb->last_order };

	if (gdb->is_client && !kymo_vec_push(&gdb->ends, end))
		gdb->is_over = true;
	if (gdb->is_client && !gdb->is_non_stop && gdb->state == GDB_RUNNING)
		gdb_stop_all(gdb);
	gdb_look_whether_all_stand(gdb);
	gdb_wake(gdb);
}

/* The thread's fork has not been told, and never is: the client never asks for its child. NULL: there is none. */
static struct gdb_process *take_untold_of(struct gdb_thread *thread)
{
	if (thread->telling != GDB_PENDING ||
	    (thread->event.kind != GDB_EVENT_FORK && thread->event.kind != GDB_EVENT_VFORK))
		return NULL;
	gdb_set_telling(thread, GDB_NOTHING_TO_TELL);
	return gdb_find_process(thread->gdb, thread->event.child);
}

struct gdb_process *gdb_take_untold(struct kymo_gdb *gdb, const struct gdb_process *maker)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];
		struct gdb_process *child = thread->process == maker ? take_untold_of(thread) : NULL;

		if (child)
			return child;
	}
	return NULL;
}

void gdb_leave_at_once(struct kymo_gdb *gdb, struct gdb_process *process)
{
	struct gdb_engines engines = { 0 };

	if (process)
		gdb_leave_process(gdb, process, &engines);
	for (size_t i = 0; i < engines.n; i++)
		kymo_engine_put(engines.items[i]);
	kymo_vec_deinit(&engines);
}

static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct gdb_thread *thread = data;
	struct kymo_gdb *gdb = thread->gdb;

	thread->is_dead = true;
	gdb_leave_at_once(gdb, take_untold_of(thread));
	if (thread->is_owed && thread->owed_signal == SIGINT) {
		gdb->is_interrupted = true;
		gdb_interrupt_one(gdb);
	}
	if (gdb->wants_threads && thread->tid != thread->process->pid)
		note_end(gdb, thread->process->pid, thread->tid, report->status);
	if (gdb->is_non_stop && thread->is_stopped)
		gdb_wake(gdb);
	else
		look_whether_any_runs(gdb, thread->process);
	return KYMO_ACTION_RESUME;
}

static bool has_threads(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process == process)
			return true;
	return false;
}

static bool has_sharers(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process == process && gdb->threads.items[i]->is_sharer)
			return true;
	return false;
}

/* The end of a process is told when no thread is left of it, with the status of its first one. */
static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct gdb_thread *thread = data;
	struct gdb_process *process = thread->process;
	struct kymo_gdb *gdb = thread->gdb;
	const bool is_first = thread->tid == process->pid && !report->superseded_by;

	gdb_forget_thread(gdb, thread);
	if (is_first) {
		process->has_first_ended = true;
		process->status = report->status;
	}
	if (process->has_ended || (is_first && has_sharers(gdb, process)) ||
	    (!is_first && (report->superseded_by || has_threads(gdb, process))))
		return;
	process->has_ended = true;
	if (!process->has_first_ended)
		process->status = report->status;
	note_end(gdb, process->pid, 0, process->status);
}

static void on_release(void *data)
{
	struct gdb_thread *thread = data;

	kymo_vec_deinit(&thread->watches);
	kymo_vec_deinit(&thread->trace_steps);
	gdb_btrace_destroy(thread->btrace);
	free(thread);
}

static const struct kymo_engine_ops ops = {
	.size = sizeof(ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.exec = on_exec,
	.syscall_entry = on_entry,
	.syscall_exit = on_return,
	.death = on_death,
	.reap = on_reap,
	.release = on_release,
};

/* ---- having engines -------------------------------------------------------------------------- */

int gdb_follow(struct kymo_gdb *gdb, struct gdb_process *process, pid_t tid, struct gdb_thread **ret)
{
	struct gdb_thread *thread = calloc(1, sizeof(*thread));
	int err;

	if (!thread || !kymo_vec_reserve(&gdb->threads, gdb->threads.n + 1)) {
		free(thread);
		return -ENOMEM;
	}
	*thread = (struct gdb_thread){ .gdb = gdb, .process = process, .tid = tid };
	err = kymo_engine_attach(gdb->hub, tid,
				 KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS |
					 KYMO_ATTACH_BREAKPOINTS,
				 &ops, thread, &thread->engine);
	if (err) {
		free(thread);
		return err;
	}
	kymo_vec_push(&gdb->threads, thread);
	gdb_set_mask(thread);
	*ret = thread;
	return 0;
}

/* Threads that are new in the list. */
static int follow_new(struct kymo_gdb *gdb, struct gdb_process *process, size_t *n_new, pid_t *busy_ret)
{
	kymo_cleanup_closedir DIR *directory = NULL;
	struct gdb_thread *thread;
	struct dirent *entry;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	directory = opendir(path);
	while (directory && !err && (entry = readdir(directory))) {
		const pid_t tid = atoi(entry->d_name);

		if (tid <= 0)
			continue;
		*busy_ret = tid;
		err = gdb_follow(gdb, process, tid, &thread);
		*n_new += !err;
		if (err == -EEXIST || err == -ESRCH)
			err = 0;
	}
	return err;
}

static size_t count_threads(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	size_t n = 0;

	for (size_t i = 0; i < gdb->threads.n; i++)
		n += gdb->threads.items[i]->process == process;
	return n;
}

/* Until a list has no new one, and no other can be: a list ends early where a thread in it has just ended. */
int gdb_follow_process(struct kymo_gdb *gdb, struct gdb_process *process, pid_t *busy_ret)
{
	int err, n_lists = 0;
	size_t n_new;

	do {
		n_new = 0;
		err = follow_new(gdb, process, &n_new, busy_ret);
		n_lists = n_new ? 0 : n_lists + 1;
	} while (!err && (n_new || (n_lists < IDLE_LISTS &&
				    kymo_count_threads(process->pid) > count_threads(gdb, process) + 1)));
	if (!err && !count_threads(gdb, process))
		err = -ESRCH;
	return err;
}

void gdb_leave_process(struct kymo_gdb *gdb, struct gdb_process *process, struct gdb_engines *engines)
{
	struct gdb_process *child;

	while ((child = gdb_take_untold(gdb, process)))
		gdb_leave_process(gdb, child, engines);
	for (size_t i = gdb->threads.n; i-- > 0;) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->process != process)
			continue;
		gdb_settle_for_good(thread);
		kymo_engine_control(thread->engine, KYMO_ACTION_DETACH);
		if (kymo_vec_push(engines, thread->engine))
			kymo_engine_get(thread->engine);
		gdb_forget_thread(gdb, thread);
	}
	gdb_forget_ends(gdb, process->pid);
	gdb_drop_process(gdb, process);
}
