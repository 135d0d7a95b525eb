/*
 * Engines that see system calls, one for each thread. The thread's struct is the engine's data, and goes with it. All
 * of this happens on the hub's thread, one callback at a time, so nothing here is locked. Engines of recorded/hub.c see
 * the same events; they copy memory into records and keep no state of a thread, so the two share no code.
 */
#include "strace/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "nested/nested.h"
#include "procfs/info.h"
#include "procfs/pidns.h"
#include "strace/events.h"
#include "strace/fds.h"
#include "strace/inject.h"
#include "strace/stack.h"
#include "strace/state.h"
#include "strace/wake.h"
#include "syscall/line.h"
#include "syscall/sets.h"
#include "syscall/touches.h"

#define SEEN \
	(KYMO_MASK_PICKED_CALLS | KYMO_EVENTS_SYSCALL | KYMO_EVENTS_SIGNAL | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | \
	 KYMO_EVENT_DEATH | KYMO_EVENT_REAP | KYMO_EVENT_JCTL)

/* ---- the memory and descriptors of a thread -------------------------------------------------- */

static size_t read_memory(void *context, uint64_t address, void *out, size_t size)
{
	const struct strace_thread *thread = context;

	return kymo_engine_read(thread->engine, address, out, size) ? 0 : size;
}

static size_t read_fd_path(void *context, int fd, char *out, size_t size)
{
	const struct strace_thread *thread = context;
	char link[64];
	ssize_t n;

	if (fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", thread->tid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", thread->tid, fd);
	n = readlink(link, out, size);
	return n < 0 ? 0 : (size_t)n;
}

static size_t read_name(void *context, pid_t pid, char *out, size_t size)
{
	char comm[16];
	size_t n;

	kymo_read_comm(pid, comm);
	n = strnlen(comm, sizeof(comm));
	memcpy(out, comm, n < size ? n : size);
	return n < size ? n : size;
}

static pid_t find_pid_here(void *context, pid_t pid, bool is_group)
{
	const struct strace_thread *thread = context;

	return is_group ? kymo_group_here(thread->tid, pid) : kymo_pid_here(thread->tid, pid);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static bool touches_path(const struct strace_thread *thread)
{
	const struct kymo_strace *s = thread->owner;
	struct kymo_syscall_target target;

	if (!s->request->which.paths.n)
		return true;
	target = thread->target;
	target.fd_path = read_fd_path;
	for (size_t i = 0; i < s->request->which.paths.n; i++)
		if (kymo_syscall_touches(&thread->call, &target, s->request->which.paths.items[i]))
			return true;
	return false;
}

/* Whether it touches the path. */
static bool begin_call(struct strace_thread *thread, const struct kymo_syscall_report *report)
{
	const struct kymo_strace *s = thread->owner;
	bool touches;

	strace_enter(thread, report->number, report->args, report->sp);
	strace_set_mode(thread, report->arch == AUDIT_ARCH_I386);
	thread->is_shown = kymo_syscall_set_has(&s->request->which.set, thread->call.number);
	touches = (thread->is_shown || s->request->target.injections) && touches_path(thread);
	thread->is_shown &= touches;
	if (thread->is_shown)
		strace_stack_take(thread, true);
	strace_show_entry(thread);
	thread->injection = NULL;
	return touches;
}

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *report)
{
	struct strace_thread *thread = data;
	bool touches;

	thread->engine = engine;
	thread->address = report->ip;
	touches = begin_call(thread, report);
	thread->entered_ns = kymo_now_ns();
	return thread->owner->request->target.injections && touches && !thread->is_i386
		       ? strace_inject_enter(thread)
		       : KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
}

/* A call whose beginning others were told before this one came to them is shown when it returns. */
static unsigned int on_exit_of_call(struct kymo_engine *engine, void *data, enum kymo_action action,
				    const struct kymo_syscall_report *report)
{
	struct strace_thread *thread = data;
	unsigned int answer;

	thread->engine = engine;
	if (!thread->is_in_call && !report->is_entry_known)
		return KYMO_ACTION_RESUME;
	if (!thread->is_in_call)
		begin_call(thread, report);
	answer = strace_inject_leave(thread, report);
	strace_stack_saw(thread);
	strace_leave(thread, report->result, kymo_now_ns());
	return answer;
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct strace_thread *thread = data;

	thread->engine = engine;
	strace_stack_take(thread, false);
	strace_signal(thread, &report->info);
	return KYMO_ACTION_RESUME | report->verdict;
}

static unsigned int on_job_control(struct kymo_engine *engine, void *data, enum kymo_action action,
				   const struct kymo_jctl_report *report)
{
	struct strace_thread *thread = data;
	const struct kymo_strace *s = thread->owner;

	if (report->signal != SIGCONT && s->sink)
		s->sink->stop(thread, report->signal);
	return KYMO_ACTION_RESUME;
}

static void tell_unfollowed(struct kymo_strace *s, pid_t pid, int err)
{
	char sentence[128];

	snprintf(sentence, sizeof(sentence), "cannot follow process %d: %s", pid, strerror(-err));
	s->user->warn(sentence, s->user->data);
	s->stream.is_incomplete = true;
}

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct strace_thread *thread = data;
	struct kymo_strace *s = thread->owner;
	int err;

	if (!s->request->target.follows)
		return KYMO_ACTION_RESUME;
	err = strace_follow(s, report->child, report->kind == KYMO_CLONE_THREAD ? thread->pid : report->child);
	if (err && err != -ESRCH && err != -EEXIST) {
		tell_unfollowed(s, report->child, err);
	}
	return KYMO_ACTION_RESUME;
}

/* A thread that calls exec becomes the first of its process. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct strace_thread *thread = data;

	strace_stack_forget(thread);
	thread->tid = kymo_engine_tid(engine);
	if (thread->owner->request->target.leaves_on_exec && !thread->is_before_exec) {
		strace_let_go_of(thread);
		return KYMO_ACTION_DETACH;
	}
	thread->is_before_exec = false;
	return KYMO_ACTION_RESUME;
}

/* It never returns from the call that it is in. */
static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct strace_thread *thread = data;

	thread->engine = engine;
	thread->has_ended = true;
	thread->address = 0;
	strace_inject_end(thread);
	strace_end_call(thread);
	return KYMO_ACTION_RESUME;
}

/* A first thread is not told to be gone before its process is, or another one has its place. */
static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct strace_thread *thread = data;
	const struct kymo_strace *s = thread->owner;

	if (thread->tid == thread->pid)
		strace_stack_forget(thread);
	if (!report->superseded_by || thread->tid != thread->pid)
		strace_end(thread, report->status);
	else if (s->sink && !(s->request->which.quiet & KYMO_STRACE_QUIET_EXEC))
		s->sink->superseded(thread, report->superseded_by);
}

/* On the main thread where that holds the last reference of one that has ended while it was delayed. */
static void on_release(void *data)
{
	struct strace_thread *thread = data;
	struct kymo_strace *s = thread->owner;

	if (!thread->has_ended && s->tracing.stage != STRACE_OVER)
		strace_let_go_of(thread);
	if (thread->out)
		fclose(thread->out);
	kymo_line_deinit(&thread->text);
	free(thread->stack);
	free(thread->made);
	s->tracing.n_cut += !thread->has_ended;
	free(thread);
	if (!--s->n_threads && s->tracing.stage != STRACE_ATTACHING)
		strace_wake(s, STRACE_END);
}

static const struct kymo_engine_ops ops = {
	.size = sizeof(ops),
	.signal = on_signal,
	.clone = on_clone,
	.jctl = on_job_control,
	.exec = on_exec,
	.syscall_entry = on_entry,
	.syscall_exit = on_exit_of_call,
	.death = on_death,
	.reap = on_reap,
	.release = on_release,
};

/* ---- threads --------------------------------------------------------------------------------- */

int strace_follow(struct kymo_strace *s, pid_t tid, pid_t pid)
{
	struct strace_thread *thread = calloc(1, sizeof(*thread));
	struct kymo_engine *engine;
	int err;

	if (!thread)
		return -ENOMEM;
	if (s->tracing.inner)
		kymo_inner_follow(s->tracing.inner, tid, pid); /* without it, it can't trace, as under every tracer */
	*thread = (struct strace_thread){ .owner = s,
					  .tid = tid,
					  .pid = pid,
					  .is_before_exec = s->tracing.is_command && !s->n_threads,
					  .entered_ns = kymo_now_ns() };
	thread->target = (struct kymo_syscall_target){ .context = thread,
						       .read = read_memory,
						       .string_size = s->request->look.string_size,
						       .style = s->request->look.style };
	if (s->request->look.fds)
		thread->target.fd_path = read_fd_path;
	if (s->request->look.fds && s->request->look.fds != KYMO_STRACE_FD_PATH)
		thread->target.put_fd = strace_put_fd;
	if (s->request->look.pids & KYMO_STRACE_PID_COMM)
		thread->target.pid_name = read_name;
	if (s->request->look.pids & KYMO_STRACE_PID_NAMESPACE)
		thread->target.pid_here = find_pid_here;
	err = s->request->output.separately ? s->user->open_own(tid, &thread->out, s->user->data) : 0;
	if (err) {
		free(thread);
		return err;
	}
	err = kymo_engine_attach(s->tracing.hub, tid,
				 KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS, &ops, thread,
				 &engine);
	if (err) {
		if (thread->out)
			fclose(thread->out);
		free(thread);
		return err;
	}
	s->n_threads++;
	err = kymo_engine_set_events(engine, SEEN);
	if (err)
		kymo_engine_control(engine, KYMO_ACTION_DETACH);
	kymo_engine_put(engine);
	return err == -EALREADY ? -ESRCH : err;
}
