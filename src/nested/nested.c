/*
 * Tracers inside of the tree that a hub traces: docs/internals/nested.md.
 *
 * Each thread has an engine of this layer, in front of all others: it is told last of a call that is entered, and first
 * of one that returns. So they see what the program asks for, and what it gets.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "kymo/engine.h"
#include "nested/inner.h"
#include "nested/nested.h"
#include "nested/ptrace.h"
#include "nested/states.h"
#include "nested/stop.h"
#include "nested/table.h"
#include "nested/wait.h"

/* kymo_inner_pick() has what is needed. */
#define NOT_INVOLVED (INNER_ALWAYS | KYMO_MASK_PICKED_CALLS)

static unsigned int answer_thread(const struct inner_thread *thread)
{
	return inner_is_stopped(thread) || thread->wait.phase == INNER_HELD ? KYMO_ACTION_STOP : KYMO_ACTION_RESUME;
}

static int trap(const struct inner_thread *thread)
{
	return thread->options & PTRACE_O_TRACESYSGOOD ? SIGTRAP | 0x80 : SIGTRAP;
}

static void stop_for_event(struct inner_thread *thread, int event, unsigned long message)
{
	inner_stop(thread, INNER_EVENT, SIGTRAP | event << 8, NULL, message);
}

/* ---- system calls ---------------------------------------------------------------------------- */

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *report)
{
	struct inner_thread *thread = data;
	bool is_ours = report->arch == AUDIT_ARCH_X86_64 && !report->is_aborted;

	thread->call.is_in = true;
	thread->call.number = is_ours ? report->number : UINT64_MAX;
	memcpy(thread->call.args, report->args, sizeof(thread->call.args));
	if (thread->tracer && thread->mode == INNER_TRACES_CALLS) {
		thread->call.has_entry_to_see = inner_is_wait(thread->call.number);
		inner_stop(thread, INNER_CALL, trap(thread), NULL, INNER_AT_ENTRY);
	} else if (inner_is_wait(thread->call.number)) {
		inner_wait_entered(thread);
	}
	return answer_thread(thread) | KYMO_SYSCALL_RUN;
}

static unsigned int on_exit_of_call(struct kymo_engine *engine, void *data, enum kymo_action action,
				    const struct kymo_syscall_report *report)
{
	struct inner_thread *thread = data;
	uint64_t number = thread->call.is_in ? thread->call.number : UINT64_MAX;
	pid_t child = (pid_t)thread->stop.message;
	bool is_done;

	thread->call.is_in = thread->call.has_entry_to_see = false;
	if (number == SYS_ptrace)
		inner_ptrace_left(thread, report->result);
	else if (inner_is_wait(number))
		inner_wait_left(thread, report->result);
	if (!thread->tracer)
		return answer_thread(thread);
	is_done = thread->owed.vfork_done && !report->is_error;
	thread->owed.vfork_done = false;
	if (is_done) {
		thread->owed.exit = true;
		stop_for_event(thread, PTRACE_EVENT_VFORK_DONE, (unsigned long)child);
	} else if (thread->mode == INNER_TRACES_CALLS) {
		inner_stop(thread, INNER_CALL, trap(thread), NULL, INNER_AT_EXIT);
	}
	return answer_thread(thread);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* inner_tell() has sent it. */
static bool is_sent_by_tell(const struct inner_thread *tracer, const siginfo_t *info)
{
	const struct inner_thread *from =
		info->si_signo == SIGCHLD && info->si_code == SI_QUEUE ? inner_find(tracer->owner, info->si_pid) : NULL;

	return from && ((from->tracer && from->tracer->pid == tracer->pid) || from->state == INNER_DEAD);
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct inner_thread *thread = data;
	int value = report->info.si_value.sival_int;

	if (is_sent_by_tell(thread, &report->info)) {
		report->info.si_code = value >> 8;
		report->info.si_status = value & 0xff;
		report->info.si_utime = report->info.si_stime = 0;
	}
	if (thread->tracer)
		inner_stop(thread, INNER_SIGNAL, report->info.si_signo, &report->info, 0);
	return answer_thread(thread) | report->verdict;
}

static unsigned int on_job_control(struct kymo_engine *engine, void *data, enum kymo_action action,
				   const struct kymo_jctl_report *report)
{
	struct inner_thread *thread = data;

	thread->group_stop = report->signal == SIGCONT ? 0 : report->signal;
	if (!thread->tracer)
		return answer_thread(thread);
	if (thread->is_seized)
		inner_stop(thread, INNER_EVENT,
			   (thread->group_stop ? thread->group_stop : SIGTRAP) | PTRACE_EVENT_STOP << 8, NULL, 0);
	else if (thread->group_stop)
		inner_stop(thread, INNER_GROUP, thread->group_stop, NULL, 0);
	return answer_thread(thread);
}

/* Something has been asked of it, and it stands now. A step that is done is told so, too. */
static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct inner_thread *thread = data;
	struct user_regs_struct registers;
	siginfo_t info;

	if (event)
		return answer_thread(thread);
	if (thread->wait.phase == INNER_HELD && inner_is_signalled(thread))
		inner_let_wait(thread);
	if (!thread->tracer || inner_is_stopped(thread) || inner_make_owed(thread) || thread->mode != INNER_STEPS)
		return answer_thread(thread);
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_code = TRAP_TRACE;
	if (!kymo_engine_get_registers(engine, &registers))
		info.si_addr = (void *)(uintptr_t)registers.rip;
	inner_stop(thread, INNER_MADE, SIGTRAP, &info, 0);
	return answer_thread(thread);
}

/* ---- births ---------------------------------------------------------------------------------- */

static int follow_inner(struct kymo_inner *inner, pid_t tid, pid_t pid, pid_t maker, struct inner_thread **ret);

static int event_of_kind(enum kymo_clone_kind kind)
{
	return kind == KYMO_CLONE_VFORK     ? PTRACE_EVENT_VFORK
	       : kind == KYMO_CLONE_PROCESS ? PTRACE_EVENT_FORK
					    : PTRACE_EVENT_CLONE;
}

/* What kind of event the kernel makes of it, or 0: none, as it asks for that. */
static int event_of(const struct inner_thread *thread, enum kymo_clone_kind kind)
{
	uint64_t flags = thread->call.args[0], signal = flags & CSIGNAL;

	if (!thread->call.is_in) /* it was not traced yet when it made the call */
		return event_of_kind(kind);
	if (thread->call.number == SYS_fork)
		return PTRACE_EVENT_FORK;
	if (thread->call.number == SYS_vfork)
		return PTRACE_EVENT_VFORK;
	if (thread->call.number == SYS_clone3 &&
	    (kymo_engine_read(thread->engine, thread->call.args[0], &flags, sizeof(flags)) ||
	     kymo_engine_read(thread->engine, thread->call.args[0] + offsetof(struct clone_args, exit_signal), &signal,
			      sizeof(signal))))
		return 0;
	if (flags & CLONE_UNTRACED)
		return 0;
	if (flags & CLONE_VFORK)
		return PTRACE_EVENT_VFORK;
	return signal == SIGCHLD ? PTRACE_EVENT_FORK : PTRACE_EVENT_CLONE;
}

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct inner_thread *thread = data, *child;
	bool is_thread = report->kind == KYMO_CLONE_THREAD;
	int event = thread->tracer ? event_of(thread, report->kind) : 0;

	if (!is_thread)
		inner_wake(thread->owner, thread->pid);
	if (follow_inner(thread->owner, report->child, is_thread ? thread->pid : report->child,
			 is_thread ? thread->maker : thread->tid, &child))
		return answer_thread(thread);
	thread->owed.vfork_done = event == PTRACE_EVENT_VFORK && thread->options & PTRACE_O_TRACEVFORKDONE;
	thread->stop.message = (unsigned long)report->child;
	if (!event || !(thread->options & 1u << event))
		return answer_thread(thread);
	if (!child->tracer)
		inner_trace(child, thread->tracer, thread->is_seized, thread->options, true);
	stop_for_event(thread, event, (unsigned long)report->child);
	return answer_thread(thread);
}

static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct inner_thread *thread = data;
	siginfo_t info;

	if (thread->tid != kymo_engine_tid(engine)) {
		inner_forget(thread);
		thread->tid = thread->pid;
		inner_add(thread);
		inner_find_parent(thread);
	}
	if (thread->tracer && thread->options & PTRACE_O_TRACEEXEC) {
		stop_for_event(thread, PTRACE_EVENT_EXEC, (unsigned long)report->former_tid);
	} else if (thread->tracer && !thread->is_seized) {
		memset(&info, 0, sizeof(info));
		info.si_signo = SIGTRAP;
		info.si_code = SI_USER;
		info.si_pid = thread->pid;
		inner_stop(thread, INNER_MADE, SIGTRAP, &info, 0);
	}
	return answer_thread(thread);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static unsigned int on_end(struct kymo_engine *engine, void *data, enum kymo_action action,
			   const struct kymo_exit_report *report)
{
	struct inner_thread *thread = data;

	inner_forget_wait(thread);
	inner_set_state(thread, INNER_GOES); /* killed, if it was */
	if (thread->tracer && thread->options & PTRACE_O_TRACEEXIT)
		stop_for_event(thread, PTRACE_EVENT_EXIT, (unsigned int)report->status);
	return answer_thread(thread);
}

static void lose_tracees(struct inner_thread *tracer)
{
	struct kymo_inner *inner = tracer->owner;
	struct inner_thread *thread = inner_next(inner, NULL);
	size_t left = 0;

	if (!tracer->has_traced)
		return;
	for (; thread; thread = inner_next(inner, thread))
		if (thread->tracer == tracer)
			inner_lose_tracer(thread);
	for (size_t i = 0; i < inner->ends.n; i++)
		if (inner->ends.items[i].tracer != tracer)
			inner->ends.items[left++] = inner->ends.items[i];
	inner->ends.n = left;
}

static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct inner_thread *thread = data;

	inner_set_state(thread, INNER_DEAD);
	thread->call.is_in = thread->call.has_entry_to_see = false;
	inner_forget_wait(thread);
	lose_tracees(thread);
	return KYMO_ACTION_RESUME;
}

/* That the first thread is gone while there are others happens in an exec alone: one of them is it from then on. */
static bool is_replaced(const struct inner_thread *leader)
{
	struct inner_thread *thread = inner_next(leader->owner, NULL);

	if (leader->tid != leader->pid)
		return false;
	for (; thread; thread = inner_next(leader->owner, thread))
		if (thread != leader && thread->pid == leader->pid && thread->state != INNER_DEAD)
			return true;
	return false;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct inner_thread *thread = data, *tracer = thread->tracer;
	struct inner_end end = { tracer, thread->tid, thread->group, report->status, ++thread->owner->serial };
	bool is_normal = WIFEXITED(report->status);

	thread->tracer = NULL;
	if (!tracer || tracer->state == INNER_DEAD || is_replaced(thread))
		return;
	if (thread->is_child)
		inner_wake(thread->owner, tracer->pid);
	else if (kymo_vec_push(&thread->owner->ends, end))
		inner_tell(tracer, thread, is_normal ? CLD_EXITED : CLD_KILLED,
			   is_normal ? WEXITSTATUS(report->status) : WTERMSIG(report->status));
}

/* ---- lifetime -------------------------------------------------------------------------------- */

static void put_inner(struct kymo_inner *inner)
{
	if (atomic_fetch_sub(&inner->refs, 1) > 1)
		return;
	kymo_vec_deinit(&inner->ends);
	kymo_vec_deinit(&inner->held);
	pthread_cond_destroy(&inner->changed);
	pthread_mutex_destroy(&inner->lock);
	free(inner);
}

static void on_release(void *data)
{
	struct inner_thread *thread = data;
	struct kymo_inner *inner = thread->owner;

	inner_forget_wait(thread);
	inner_forget(thread);
	for (struct inner_thread *other = thread->has_traced ? inner_next(inner, NULL) : NULL; other;
	     other = inner_next(inner, other))
		if (other->tracer == thread)
			other->tracer = NULL;
	free(thread);
	put_inner(inner);
}

static const struct kymo_engine_ops ops = {
	.size = sizeof(ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.jctl = on_job_control,
	.exec = on_exec,
	.syscall_entry = on_entry,
	.syscall_exit = on_exit_of_call,
	.exit = on_end,
	.death = on_death,
	.reap = on_reap,
	.release = on_release,
};

/* With a reference to its engine. -EEXIST: it is there already. */
static int attach_inner(struct kymo_inner *inner, pid_t tid, pid_t pid, pid_t maker, struct inner_thread **ret)
{
	struct inner_thread *thread = calloc(1, sizeof(*thread));
	int err;

	if (!thread)
		return -ENOMEM;
	*thread = (struct inner_thread){ .owner = inner, .tid = tid, .pid = pid, .maker = maker };
	err = kymo_engine_attach(inner->hub, tid, KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS,
				 &ops, thread, &thread->engine);
	if (err) {
		free(thread);
		return err;
	}
	atomic_fetch_add(&inner->refs, 1);
	err = kymo_engine_set_events(thread->engine, NOT_INVOLVED);
	if (err)
		kymo_engine_control(thread->engine, KYMO_ACTION_DETACH);
	if (err)
		kymo_engine_put(thread->engine);
	else
		*ret = thread;
	return err;
}

void kymo_inner_pick(uint64_t *calls)
{
	static const unsigned int numbers[] = { SYS_ptrace, SYS_wait4, SYS_waitid };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		calls[numbers[i] / 64] |= 1ull << (numbers[i] % 64);
}

static int follow_inner(struct kymo_inner *inner, pid_t tid, pid_t pid, pid_t maker, struct inner_thread **ret)
{
	int err = attach_inner(inner, tid, pid, maker, ret);

	if (err == -EEXIST && (*ret = inner_find(inner, tid)))
		return 0;
	if (err)
		return err;
	inner_add(*ret);
	kymo_engine_put((*ret)->engine);
	return 0;
}

int kymo_inner_follow(struct kymo_inner *inner, pid_t tid, pid_t pid)
{
	struct inner_thread *thread;
	int err = follow_inner(inner, tid, pid, 0, &thread);

	return err == -EEXIST ? 0 : err;
}

int kymo_inner_create(struct kymo_hub *hub, struct kymo_inner **ret)
{
	struct kymo_inner *inner = calloc(1, sizeof(*inner));
	int err;

	if (!inner)
		return -ENOMEM;
	inner->hub = hub;
	atomic_init(&inner->refs, 1);
	pthread_mutex_init(&inner->lock, NULL);
	pthread_cond_init(&inner->changed, NULL);
	err = inner_start_clock(inner);
	if (err)
		put_inner(inner);
	else
		*ret = inner;
	return err;
}

void kymo_inner_stop(struct kymo_inner *inner)
{
	if (inner)
		inner_stop_clock(inner);
}

void kymo_inner_destroy(struct kymo_inner *inner)
{
	if (inner)
		put_inner(inner);
}
