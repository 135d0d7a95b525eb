/*
 * wait4() and waitid() of tracers inside of the tree.
 *
 * The kernel knows nothing of their tracees, but all of their children, and often those are the same. So a call that
 * finds nothing to tell here is made as it is, and ended by an interrupt when there is something. Where the kernel
 * finds no children at all, it is restarted, and held at its entry by a STOP: if kymo dies then, it is made, and says
 * ECHILD. Nothing tells of a signal to a thread that is held so. The clock, a thread of its own that lives while a
 * tracer is held, looks for them.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/states.h"
#include "base/vec.h"
#include "kymo/engine.h"
#include "nested/allow.h"
#include "nested/inner.h"
#include "nested/states.h"
#include "nested/table.h"
#include "nested/wait.h"

#define RESTART 512 /* ERESTARTSYS, the kernel's own: again, or EINTR if a handler wants that */
#define CLOCK_NS 30000000

/* What may follow what. HELD ends when the thread is taken out of the list of those alone, and a call that has an
 * answer is not made. */
static const struct kymo_state_row phases[] = {
	[INNER_NOT_WAITING] = { "not waiting",
				KYMO_STATE(INNER_NOT_WAITING) | KYMO_STATE(INNER_WAITS) | KYMO_STATE(INNER_ANSWERED) },
	[INNER_WAITS] = { "waits",
			  KYMO_STATE(INNER_HELD) | KYMO_STATE(INNER_ANSWERED) | KYMO_STATE(INNER_NOT_WAITING) },
	[INNER_HELD] = { "held", KYMO_STATE(INNER_NOT_WAITING) },
	[INNER_ANSWERED] = { "answered", KYMO_STATE(INNER_NOT_WAITING) },
};

static void set_phase(struct inner_thread *thread, enum inner_phase phase)
{
	kymo_state_check("wait of a tracer", phases, kymo_countof(phases), thread->wait.phase, phase);
	thread->wait.phase = phase;
}

struct wait {
	idtype_t type;
	pid_t id;
	unsigned int options;
	uint64_t status, info, usage; /* addresses, or 0 */
};

bool inner_is_wait(uint64_t number)
{
	return number == SYS_wait4 || number == SYS_waitid;
}

static pid_t group_of(const struct inner_thread *thread)
{
	pid_t group = getpgid(thread->pid);

	return group > 0 ? group : 0;
}

static struct wait wait_of(const struct inner_thread *thread)
{
	const uint64_t *args = thread->call.args;
	pid_t pid = (pid_t)args[0];
	struct wait wait;

	if (thread->call.number == SYS_waitid)
		return (struct wait){ (idtype_t)args[0], (pid_t)args[1], (unsigned int)args[3], 0, args[2], args[4] };
	wait = (struct wait){ P_ALL, 0, (unsigned int)args[2] | WEXITED, args[1], 0, args[3] };
	if (pid != -1) {
		wait.type = pid > 0 ? P_PID : P_PGID;
		wait.id = pid > 0 ? pid : pid == 0 ? group_of(thread) : -pid;
	}
	return wait;
}

static bool is_meant(const struct inner_thread *waiter, const struct wait *wait, const struct inner_thread *tracer,
		     pid_t tid, pid_t group)
{
	if (tracer != waiter && (tracer->pid != waiter->pid || wait->options & __WNOTHREAD))
		return false;
	return wait->type == P_ALL || (wait->type == P_PID && wait->id == tid) ||
	       (wait->type == P_PGID && wait->id == group);
}

/* ---- what there is to be told ---------------------------------------------------------------- */

struct found {
	struct inner_thread *thread; /* one that has stopped, or … */
	size_t end;                  /* … an end */
	uint64_t serial;             /* 0: nothing */
	bool is_any;                 /* a thread will have something to report */
};

static struct found look_for_wait(const struct inner_thread *waiter, const struct wait *wait)
{
	const struct kymo_inner *inner = waiter->owner;
	struct found found = { .serial = 0 };

	for (struct inner_thread *thread = inner_next(inner, NULL); thread; thread = inner_next(inner, thread)) {
		if (!thread->tracer || !is_meant(waiter, wait, thread->tracer, thread->tid, thread->group))
			continue;
		found.is_any |= !(thread->is_child && thread->state == INNER_DEAD);
		if (thread->state == INNER_UNTOLD && (!found.serial || thread->stop.serial < found.serial)) {
			found.thread = thread;
			found.serial = thread->stop.serial;
		}
	}
	for (size_t i = 0; i < inner->ends.n; i++) {
		const struct inner_end *end = &inner->ends.items[i];

		if (!is_meant(waiter, wait, end->tracer, end->tid, end->group))
			continue;
		found.is_any = true;
		if (wait->options & WEXITED && (!found.serial || end->serial < found.serial)) {
			found.thread = NULL;
			found.end = i;
			found.serial = end->serial;
		}
	}
	return found;
}

static int write_info(struct inner_thread *waiter, uint64_t address, pid_t tid, int code, int status)
{
	struct inner_status who;
	int32_t info[7] = { SIGCHLD, 0, code, 0, tid, 0, status };

	if (inner_read_status(tid, &who))
		info[5] = (int32_t)who.uid[0];
	return kymo_engine_write(waiter->engine, address, info, sizeof(info));
}

static int code_of_end(int status)
{
	return WIFEXITED(status) ? CLD_EXITED : WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
}

/* Tell it. What the call returns. */
static int64_t take_status(struct inner_thread *waiter, const struct wait *wait, const struct found *found)
{
	const struct inner_end *end = found->thread ? NULL : &waiter->owner->ends.items[found->end];
	int status = end ? end->status : found->thread->stop.code << 8 | 0x7f;
	pid_t tid = end ? end->tid : found->thread->tid;
	struct rusage usage;
	int err = 0;

	memset(&usage, 0, sizeof(usage));
	if (wait->status)
		err = kymo_engine_write(waiter->engine, wait->status, &status, sizeof(status));
	if (!err && wait->info && end)
		err = write_info(waiter, wait->info, tid, code_of_end(status),
				 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	else if (!err && wait->info)
		err = write_info(waiter, wait->info, tid, CLD_TRAPPED, found->thread->stop.code);
	if (!err && wait->usage)
		err = kymo_engine_write(waiter->engine, wait->usage, &usage, sizeof(usage));
	if (!(wait->options & WNOWAIT)) {
		if (found->thread)
			inner_set_state(found->thread, INNER_TOLD);
		else
			waiter->owner->ends.items[found->end] = waiter->owner->ends.items[--waiter->owner->ends.n];
	}
	if (err)
		return -EFAULT;
	return waiter->call.number == SYS_waitid ? 0 : tid;
}

/* ---- holding --------------------------------------------------------------------------------- */

static void hold(struct inner_thread *thread)
{
	struct kymo_inner *inner = thread->owner;

	pthread_mutex_lock(&inner->lock);
	if (kymo_vec_push(&inner->held, thread))
		set_phase(thread, INNER_HELD);
	pthread_cond_broadcast(&inner->changed);
	pthread_mutex_unlock(&inner->lock);
}

void inner_forget_wait(struct inner_thread *thread)
{
	struct kymo_inner *inner = thread->owner;

	pthread_mutex_lock(&inner->lock);
	for (size_t i = 0; i < inner->held.n; i++)
		if (inner->held.items[i] == thread)
			inner->held.items[i--] = inner->held.items[--inner->held.n];
	pthread_mutex_unlock(&inner->lock);
	set_phase(thread, INNER_NOT_WAITING);
}

static void release(struct inner_thread *thread, enum inner_phase phase)
{
	inner_forget_wait(thread);
	set_phase(thread, phase);
	if (!inner_is_stopped(thread))
		kymo_engine_control(thread->engine, KYMO_ACTION_RESUME);
}

bool inner_is_signalled(const struct inner_thread *thread)
{
	struct inner_status status;

	return !inner_read_status(thread->tid, &status) || status.pending & ~status.blocked;
}

void inner_let_wait(struct inner_thread *thread)
{
	release(thread, INNER_WAITS);
}

void inner_wake(struct kymo_inner *inner, pid_t pid)
{
	for (struct inner_thread *thread = inner_next(inner, NULL); thread; thread = inner_next(inner, thread))
		if (thread->pid == pid && thread->wait.phase == INNER_HELD)
			inner_let_wait(thread);
}

/* The call is not made: one that changes nothing is, with the same arguments, as those stay in registers. */
static void answer_wait(struct inner_thread *thread, int64_t result)
{
	thread->wait.result = result;
	set_phase(thread, INNER_ANSWERED);
	kymo_engine_set_syscall(thread->engine, SYS_sched_yield, thread->call.args);
}

/* ---- telling tracers ------------------------------------------------------------------------- */

static void send_sigchld(const struct inner_thread *tracer, const struct inner_thread *thread, int code, int status)
{
	struct inner_status who;
	siginfo_t info;

	if (inner_read_status(tracer->tid, &who) && who.ignored & 1ull << (SIGCHLD - 1))
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGCHLD;
	info.si_code = SI_QUEUE; /* the kernel lets no other process say CLD_…; that is put right when it arrives */
	info.si_pid = thread->tid;
	info.si_uid = inner_read_status(thread->tid, &who) ? who.uid[0] : 0;
	info.si_value.sival_int = (status & 0xff) | code << 8;
	syscall(SYS_rt_sigqueueinfo, tracer->pid, SIGCHLD, &info);
}

static void look_again(struct inner_thread *waiter)
{
	struct wait wait = wait_of(waiter);
	struct found found = look_for_wait(waiter, &wait);

	if (!found.serial)
		return;
	if (waiter->wait.phase == INNER_HELD) {
		inner_forget_wait(waiter);
		answer_wait(waiter, take_status(waiter, &wait, &found));
		release(waiter, INNER_ANSWERED);
	} else if (waiter->wait.phase == INNER_WAITS) {
		kymo_engine_control(waiter->engine, KYMO_ACTION_REPORT);
	}
}

void inner_tell(struct inner_thread *tracer, const struct inner_thread *thread, int code, int status)
{
	send_sigchld(tracer, thread, code, status);
	for (struct inner_thread *waiter = inner_next(tracer->owner, NULL); waiter;
	     waiter = inner_next(tracer->owner, waiter))
		if (waiter->pid == tracer->pid && waiter->call.is_in && !inner_is_stopped(waiter) &&
		    waiter->state != INNER_DEAD)
			look_again(waiter);
}

/* ---- the calls ------------------------------------------------------------------------------- */

bool inner_wait_entered(struct inner_thread *thread)
{
	struct wait wait = wait_of(thread);
	struct found found = look_for_wait(thread, &wait);
	bool must_hold = thread->wait.must_hold;

	thread->wait.must_hold = false;
	set_phase(thread, INNER_WAITS);
	if (found.serial)
		answer_wait(thread, take_status(thread, &wait, &found));
	else if (must_hold && found.is_any && !(wait.options & WNOHANG) && !inner_is_signalled(thread))
		hold(thread);
	return thread->wait.phase == INNER_HELD;
}

/* A restart is the kernel's business, on the way to user mode. An interrupt now sees to it that it looks, whether there
 * is a signal or not. */
static void restart(struct inner_thread *thread)
{
	if (!kymo_engine_set_result(thread->engine, -RESTART))
		ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0);
}

void inner_wait_left(struct inner_thread *thread, int64_t result)
{
	enum inner_phase phase = thread->wait.phase;
	struct wait wait = wait_of(thread);
	struct found found;
	bool is_nothing = result == -RESTART || result == -ECHILD ||
			  (result == 0 && wait.options & WNOHANG && thread->call.number == SYS_wait4);

	set_phase(thread, INNER_NOT_WAITING);
	if (phase == INNER_ANSWERED) {
		kymo_engine_set_result(thread->engine, thread->wait.result);
		return;
	}
	if (!is_nothing)
		return;
	found = look_for_wait(thread, &wait);
	if (found.serial) {
		kymo_engine_set_result(thread->engine, take_status(thread, &wait, &found));
	} else if (result == -ECHILD && found.is_any && wait.options & WNOHANG) {
		if (!wait.info || !write_info(thread, wait.info, 0, 0, 0))
			kymo_engine_set_result(thread->engine, 0);
	} else if (result == -ECHILD && found.is_any) {
		thread->wait.must_hold = true;
		restart(thread);
	}
}

/* ---- the clock ------------------------------------------------------------------------------- */

/* Held threads that get a signal are to report, and go on from there. */
static void look_at_held(const struct kymo_inner *inner)
{
	for (size_t i = 0; i < inner->held.n; i++)
		if (inner_is_signalled(inner->held.items[i]))
			kymo_engine_control(inner->held.items[i]->engine, KYMO_ACTION_REPORT);
}

static void *be_clock(void *data)
{
	struct kymo_inner *inner = data;

	pthread_mutex_lock(&inner->lock);
	while (!inner->is_ending) {
		if (inner->held.n) {
			struct timespec until;

			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += CLOCK_NS;
			until.tv_sec += until.tv_nsec / 1000000000;
			until.tv_nsec %= 1000000000;
			pthread_cond_timedwait(&inner->changed, &inner->lock, &until);
		} else {
			pthread_cond_wait(&inner->changed, &inner->lock);
		}
		look_at_held(inner);
	}
	pthread_mutex_unlock(&inner->lock);
	return NULL;
}

int inner_start_clock(struct kymo_inner *inner)
{
	sigset_t all, mask;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = pthread_create(&inner->clock, NULL, be_clock, inner);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	inner->has_clock = !err;
	return -err;
}

void inner_stop_clock(struct kymo_inner *inner)
{
	if (!inner->has_clock)
		return;
	pthread_mutex_lock(&inner->lock);
	inner->is_ending = true;
	pthread_cond_broadcast(&inner->changed);
	pthread_mutex_unlock(&inner->lock);
	pthread_join(inner->clock, NULL);
	inner->has_clock = false;
}
