/* A thread that is traced from inside: its stops, and how it goes on from them. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kymo/engine.h"
#include "nested/allow.h"
#include "nested/inner.h"
#include "nested/states.h"
#include "nested/stop.h"
#include "nested/table.h"
#include "nested/wait.h"

#define CODE(signal, event) ((signal) | (event) << 8)

void inner_stop(struct inner_thread *thread, enum inner_stop stop, int code, const siginfo_t *info,
		unsigned long message)
{
	inner_set_state(thread, INNER_UNTOLD);
	thread->stop.kind = stop;
	thread->stop.code = code;
	thread->stop.message = message;
	thread->stop.serial = ++thread->owner->serial;
	if (info) {
		thread->stop.info = *info;
	} else {
		memset(&thread->stop.info, 0, sizeof(thread->stop.info));
		thread->stop.info.si_signo = code & 0x7f;
		thread->stop.info.si_code = code;
		thread->stop.info.si_pid = thread->pid;
	}
	inner_tell(thread->tracer, thread, CLD_TRAPPED, code & 0x7f);
}

/* As if a signal without a sender were delivered. */
static void make_signal_stop(struct inner_thread *thread, int signal)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = signal;
	info.si_code = SI_USER;
	info.si_pid = thread->tracer->pid;
	inner_stop(thread, INNER_MADE, signal, &info, 0);
}

static void stop_with_process(struct inner_thread *thread)
{
	if (thread->is_seized)
		inner_stop(thread, INNER_EVENT, CODE(thread->group_stop, PTRACE_EVENT_STOP), NULL, 0);
	else
		inner_stop(thread, INNER_GROUP, thread->group_stop, NULL, 0);
}

bool inner_make_owed(struct inner_thread *thread)
{
	bool owes_exit = thread->owed.exit && thread->mode == INNER_TRACES_CALLS;
	bool is_seized = thread->is_seized;

	thread->owed.exit = false;
	if (owes_exit) {
		inner_stop(thread, INNER_CALL, SIGTRAP | (thread->options & PTRACE_O_TRACESYSGOOD ? 0x80 : 0), NULL,
			   INNER_AT_EXIT);
		return true;
	}
	if (!thread->owed.stop)
		return false;
	thread->owed.stop = false;
	if (thread->group_stop)
		stop_with_process(thread);
	else if (is_seized)
		inner_stop(thread, INNER_EVENT, CODE(SIGTRAP, PTRACE_EVENT_STOP), NULL, 0);
	else
		make_signal_stop(thread, SIGSTOP);
	return true;
}

/* Whatever keeps it from stopping is told to quiesce, when it does. */
static void make_stand(struct inner_thread *thread)
{
	if (inner_is_stopped(thread))
		return;
	if (kymo_engine_control(thread->engine, KYMO_ACTION_STOP) == 0)
		inner_make_owed(thread);
}

void inner_interrupt(struct inner_thread *thread)
{
	thread->owed.stop = true;
	make_stand(thread);
}

void inner_find_parent(struct inner_thread *thread)
{
	struct inner_status status;

	thread->is_child = thread->tracer && thread->tid == thread->pid && inner_read_status(thread->tid, &status) &&
			   status.parent == thread->tracer->pid;
}

void inner_trace(struct inner_thread *thread, struct inner_thread *tracer, bool is_seized, unsigned int options,
		 bool stops)
{
	pid_t group = getpgid(thread->tid);

	thread->tracer = tracer;
	tracer->has_traced = true;
	thread->is_seized = is_seized;
	thread->options = options;
	thread->mode = INNER_RUNS;
	thread->group = group > 0 ? group : 0;
	inner_find_parent(thread);
	inner_involve(thread);
	inner_involve(tracer);
	if (!stops && !(thread->group_stop))
		return;
	thread->owed.stop = true;
	make_stand(thread);
}

/* ---- going on -------------------------------------------------------------------------------- */

static void resume_inner(struct inner_thread *thread, enum kymo_action action)
{
	if (thread->call.has_entry_to_see) {
		thread->call.has_entry_to_see = false;
		inner_wait_entered(thread);
	}
	if (thread->wait.phase != INNER_HELD)
		kymo_engine_control(thread->engine, action);
}

/* As the kernel does for a tracer that has changed the number. */
static void deliver(struct inner_thread *thread, int signal)
{
	siginfo_t info = thread->stop.info;

	if (signal && signal != info.si_signo) {
		memset(&info, 0, sizeof(info));
		info.si_signo = signal;
		info.si_code = SI_USER;
		info.si_pid = thread->tracer->pid;
	}
	if (thread->stop.kind == INNER_SIGNAL)
		kymo_engine_set_signal(thread->engine, signal, &info);
	else if (signal && thread->stop.kind == INNER_MADE)
		kymo_engine_inject(thread->engine, &info);
	else if (signal && thread->stop.kind == INNER_CALL)
		syscall(SYS_tgkill, thread->pid, thread->tid, signal);
}

int inner_resume(struct inner_thread *thread, enum inner_mode mode, int signal)
{
	if (!inner_is_stopped(thread))
		return -ESRCH;
	deliver(thread, signal);
	inner_set_state(thread, INNER_GOES);
	thread->mode = mode;
	if (!inner_make_owed(thread))
		resume_inner(thread, mode == INNER_STEPS ? KYMO_ACTION_SINGLESTEP : KYMO_ACTION_RESUME);
	return 0;
}

static void forget_tracer(struct inner_thread *thread)
{
	pid_t tracer = thread->tracer->pid;

	if (thread->state != INNER_DEAD)
		inner_set_state(thread, INNER_GOES);
	thread->owed.stop = thread->owed.exit = false;
	thread->tracer = NULL;
	thread->options = 0;
	thread->mode = INNER_RUNS;
	if (thread->state != INNER_DEAD)
		resume_inner(thread, KYMO_ACTION_RESUME);
	inner_wake(thread->owner, tracer);
}

void inner_untrace(struct inner_thread *thread, int signal)
{
	if (inner_is_stopped(thread))
		deliver(thread, signal);
	forget_tracer(thread);
}

/* A signal that was being told is delivered: it is in its place. */
void inner_lose_tracer(struct inner_thread *thread)
{
	if (thread->options & PTRACE_O_EXITKILL)
		syscall(SYS_tgkill, thread->pid, thread->tid, SIGKILL);
	forget_tracer(thread);
}
