/*
 * What the stops of followed threads mean, and what is done at once: docs/design/following.md has the table. Nothing here waits for a
 * process that runs, but for a newborn's first stop and for the end of an execve, which come by themselves.
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "proc/tree.h"

#define BIRTH_MS 2000
#define MOMENT_NS 20000000u

static void tell(struct kymo_process *process, enum kymo_tree_kind kind, pid_t tid)
{
	struct kymo_tree_event event = { .kind = kind, .process = process, .tid = tid };

	if (kind == KYMO_TREE_THREAD_ENDED || kind == KYMO_TREE_ENDED)
		memcpy(event.comm, process->tree->comm, sizeof(event.comm));
	else
		kymo_tree_read_comm(tid, event.comm);
	event.status = process->status;
	event.is_held = kind == KYMO_TREE_THREAD && process->is_held;
	kymo_tree_tell(process->tree, &event);
}

/* It stands in a stop in which it will stay. */
static void hold(struct kymo_process *process, struct kymo_thread *thread)
{
	/* 32-bit code has registers of its own, of which nothing is needed. */
	if (kymo_get_registers(thread->tid, &thread->registers))
		memset(&thread->registers, 0, sizeof(thread->registers));
	thread->is_stopped = true;
}

/* From a stop that is over with: on, or into the next one if the process is being stopped. Any stop may have used up an interrupt. */
static void go_on(struct kymo_process *process, pid_t tid, int signal)
{
	if (process->stopped)
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	ptrace(process->startup.is_on && tid == process->pid ? PTRACE_SYSCALL : PTRACE_CONT, tid, 0, signal);
}

/* ---- births -------------------------------------------------------------------------------------------------------- */

/* The first stop of a newborn, which may have been seen already. False: it is dead, or so late that it will be a stranger. */
static bool claim(struct kymo_tree *tree, pid_t tid, int *status_ret)
{
	uint64_t deadline = kymo_now_ns() + (uint64_t)BIRTH_MS * 1000000;

	if (kymo_tree_take_stranger(tree, tid, status_ret))
		return true;
	for (unsigned int spins = 0;; spins++) {
		pid_t got = waitpid(tid, status_ret, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*status_ret);
		if ((got < 0 && errno != EINTR) || kymo_now_ns() > deadline)
			return false;
		kymo_wait_a_little(spins);
	}
}

static int stop_signal_of(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;
}

static bool add_thread(struct kymo_process *process, pid_t tid, int status)
{
	struct kymo_thread thread = { .tid = tid, .stop_signal = stop_signal_of(status) };

	if (!kymo_vec_push(&process->threads, thread)) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return false;
	}
	hold(process, &process->threads.items[process->threads.n - 1]);
	return true;
}

static void new_thread(struct kymo_process *process, pid_t tid, int status)
{
	if (!add_thread(process, tid, status))
		return;
	if (process->holds_birth) {	/* its maker stops on its way out of the call: go_on() sees to it */
		process->holds_birth = false;
		process->is_held = process->stopped = true;
	}
	tell(process, KYMO_TREE_THREAD, tid);
	if (!process->stopped)
		kymo_keep_run_thread(&process->threads.items[process->threads.n - 1]);
}

void kymo_process_hold_birth(struct kymo_process *process, bool is_to_hold)
{
	process->holds_birth = is_to_hold;
}

/* Where the kernel has no kcmp(), it is vfork() that shares memory. */
static bool shares_memory(pid_t a, pid_t b, int event)
{
	long order = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);

	return order < 0 ? event == PTRACE_EVENT_VFORK : order == 0;
}

/* A process object for one that stands stopped; NULL, and it is let go, when it can't be had. */
static struct kymo_process *new_member(struct kymo_tree *tree, pid_t pid, int status, struct kymo_error **refusal_ret)
{
	struct kymo_process *process;
	struct kymo_error *error = kymo_process_create_held(pid, &process, refusal_ret);

	if (!error && kymo_tree_add(tree, process)) {
		process->is_whole = process->was_born_here = process->stopped = true;
		if (add_thread(process, pid, status))
			return process;
		process->is_past = true;
	} else {
		ptrace(PTRACE_DETACH, pid, 0, 0);
	}
	if (!error) {
		kymo_error_destroy(*refusal_ret);
		kymo_process_destroy(process);
	}
	kymo_error_destroy(error);
	return NULL;
}

static void new_process(struct kymo_tree *tree, struct kymo_process *maker, pid_t pid, int status, bool shares)
{
	struct kymo_tree_event event = { .kind = shares ? KYMO_TREE_SHARING : KYMO_TREE_FORKED, .other = maker, .tid = pid };

	event.process = new_member(tree, pid, status, &event.refusal);
	if (!event.process)
		return;
	kymo_tree_read_comm(pid, event.comm);
	if (shares) {
		event.process->memory_of = maker->memory_of ? maker->memory_of : maker;
		kymo_keep_resume(event.process);
	}
	kymo_tree_tell(tree, &event);
}

void kymo_follow_born(struct kymo_process *process, pid_t maker, int event)
{
	unsigned long message;
	pid_t tid;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, maker, 0, &message))
		return;	/* killed: the newborn will be an orphan */
	tid = (pid_t)message;
	if (tid <= 0 || kymo_tree_find(process->tree, tid) || !claim(process->tree, tid, &status))
		return;
	if (!syscall(SYS_tgkill, process->pid, tid, 0))
		new_thread(process, tid, status);
	else
		new_process(process->tree, process, tid, status, shares_memory(maker, tid, event));
}

void kymo_follow_orphan(struct kymo_tree *tree, const struct stranger *orphan)
{
	struct kymo_process *process = NULL;
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(orphan->tid, &info);

	if (!error && info.tgid != orphan->tid) {
		process = kymo_tree_find(tree, info.tgid);
		if (process)
			new_thread(process, orphan->tid, orphan->status);
		else
			ptrace(PTRACE_DETACH, orphan->tid, 0, 0);
	} else if (!error) {
		new_process(tree, NULL, orphan->tid, orphan->status, false);
	}
	kymo_error_destroy(error);
}

/* ---- ends ---------------------------------------------------------------------------------------------------------- */

static void is_over(struct kymo_process *process)
{
	process->is_past = true;
	process->stopped = false;
	process->startup.is_on = false;
	process->threads.n = 0;
}

void kymo_follow_ended(struct kymo_process *process, int status)
{
	if (process->is_past)
		return;
	process->status = status;
	process->reaped = process->launched;
	is_over(process);
	tell(process, KYMO_TREE_ENDED, process->pid);
}

static void thread_ended(struct kymo_process *process, pid_t tid, int status)
{
	struct kymo_thread *thread = kymo_find_thread(process, tid);

	if (tid == process->pid) {
		kymo_follow_ended(process, status);
		return;
	}
	if (thread)
		*thread = process->threads.items[--process->threads.n];
	tell(process, KYMO_TREE_THREAD_ENDED, tid);
}

/* ---- exec ---------------------------------------------------------------------------------------------------------- */

/* Behind execve: the exec event comes within it, and its result has yet to be stored in rax. */
static void finish_exec(struct kymo_process *process)
{
	struct kymo_error *error = kymo_run_to_syscall_stop(process, process->pid);

	if (!error)
		hold(process, &process->threads.items[0]);
	kymo_error_destroy(error);	/* it was killed, which has been told */
}

void kymo_follow_execed(struct kymo_process *process)
{
	struct kymo_tree_event event = { .kind = KYMO_TREE_EXECED, .other = process, .tid = process->pid };

	is_over(process);
	event.process = new_member(process->tree, process->pid, 0, &event.refusal);
	if (!event.process) {
		tell(process, KYMO_TREE_ENDED, process->pid);
		return;
	}
	event.process->launched = process->launched;
	process->launched = false;
	if (!event.refusal)
		event.refusal = kymo_process_check_class(event.process);
	kymo_tree_read_comm(event.process->pid, event.comm);
	kymo_tree_tell(process->tree, &event);
	finish_exec(event.process);
}

/* ---- signals ------------------------------------------------------------------------------------------------------- */

/* Who has a tracer is woken up by signals that it ignores, too. */
static void undo_waking(struct kymo_process *process, struct kymo_thread *thread, int signal)
{
	struct user_regs_struct again;
	uint64_t limit_at;
	int64_t limit_ms;

	if (!thread || process->stopped || kymo_get_registers(thread->tid, &thread->registers) ||
	    !kymo_remote_uninterrupt(&thread->registers, &again, &limit_ms, &limit_at) || kymo_signal_disposition(thread->tid, signal) != KYMO_DISPOSITION_IGNORED)
		return;
	kymo_undo_interruption(process, thread);
}

/* ---- all stops ----------------------------------------------------------------------------------------------------- */

/* Of the thread that starts a program. */
static void starting(struct kymo_process *process, int status)
{
	struct kymo_tree_event event = { .kind = KYMO_TREE_STARTUP, .process = process, .tid = process->pid };
	struct kymo_thread *thread = &process->threads.items[0];
	int signal;

	process->startup.moment_ns = kymo_now_ns() + MOMENT_NS;
	if (!kymo_startup_stopped(process, status, &event.startup, &signal)) {
		go_on(process, process->pid, signal);
		return;
	}
	if (process->is_past)
		return;		/* another program */
	process->startup.is_on = false;
	process->stopped = true;
	thread->is_in_call = true;
	hold(process, thread);
	kymo_tree_tell(process->tree, &event);
}

static void stopped_for_good(struct kymo_process *process, struct kymo_thread *thread, int status)
{
	thread->stop_signal = stop_signal_of(status);
	if (process->stopped) {
		hold(process, thread);
		kymo_undo_interruption(process, thread);
		return;
	}
	kymo_keep_run_thread(thread);
}

void kymo_follow_dispatch(struct kymo_process *process, pid_t tid, int status)
{
	struct kymo_thread *thread = kymo_find_thread(process, tid);
	int event = status >> 16, signal = WSTOPSIG(status);

	if (!WIFSTOPPED(status)) {
		thread_ended(process, tid, status);
		return;
	}
	if (event == PTRACE_EVENT_EXEC) {
		kymo_follow_execed(process);
		return;
	}
	if (!thread) {	/* of a first thread that has ended nothing else is heard */
		ptrace(PTRACE_CONT, tid, 0, event ? 0 : signal);
		return;
	}
	if (process->startup.is_on && !process->stopped && tid == process->pid && !stop_signal_of(status)) {
		thread->stop_signal = 0;
		starting(process, status);
		return;
	}
	switch (event) {
	case PTRACE_EVENT_STOP:
		stopped_for_good(process, thread, status);
		return;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		kymo_follow_born(process, tid, event);
		break;
	case 0:
		if (signal == (SIGTRAP | 0x80))
			break;		/* behind a call that kymo had it make */
		undo_waking(process, thread, signal);
		go_on(process, tid, signal);
		return;
	}
	go_on(process, tid, 0);
}
