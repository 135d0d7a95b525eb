/*
 * Tracing from its beginning to its end. Engines see the calls, on the hub's thread (engine.c). The main thread
 * waits until the pipe says that there is no engine left, or that the user has interrupted.
 */
#include "strace/tracer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/remote.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/states.h"
#include "base/vec.h"
#include "hub/hub.h"
#include "hub/launch.h"
#include "nested/nested.h"
#include "proc/reach.h"
#include "procfs/info.h"
#include "stack/stack.h"
#include "strace/engine.h"
#include "strace/events.h"
#include "strace/inject.h"
#include "strace/state.h"
#include "strace/wake.h"

enum { IDLE_LISTS = 100 };

/* What may follow what. Nothing was attached to where ATTACHING is followed by OVER. */
static const struct kymo_state_row stages[] = {
	[STRACE_ATTACHING] = { "attaching", KYMO_STATE(STRACE_TRACING) | KYMO_STATE(STRACE_OVER) },
	[STRACE_TRACING] = { "tracing", KYMO_STATE(STRACE_OVER) },
	[STRACE_OVER] = { "over", 0 },
};

static void set_stage(struct kymo_strace *s, enum strace_stage stage)
{
	kymo_state_check("tracer of system calls", stages, kymo_countof(stages), s->tracing.stage, stage);
	s->tracing.stage = stage;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Threads of a process that have been found; those of the lists before the last one in order. */
struct found {
	KYMO_VEC(pid_t) tids;
	size_t n_ordered, n_followed;
	bool is_leaderless; /* the first thread has ended before the others */
};

static int compare_ids(const void *a, const void *b)
{
	const pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;

	return (one > other) - (one < other);
}

static bool is_found(const struct found *found, pid_t tid)
{
	return found->n_ordered && bsearch(&tid, found->tids.items, found->n_ordered, sizeof(tid), compare_ids);
}

static void put_in_order(struct found *found)
{
	if (found->tids.n > found->n_ordered)
		qsort(found->tids.items, found->tids.n, sizeof(*found->tids.items), compare_ids);
	found->n_ordered = found->tids.n;
}

/* Threads that are new in the list. */
static int follow_new(struct kymo_strace *s, pid_t pid, struct found *found, pid_t *last_ret)
{
	kymo_cleanup_closedir DIR *directory = NULL;
	struct dirent *entry;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	while (directory && !err && (entry = readdir(directory))) {
		const pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || is_found(found, tid))
			continue;
		*last_ret = tid;
		err = kymo_vec_push(&found->tids, tid) ? strace_follow(s, tid, pid) : -ENOMEM;
		found->n_followed += !err || err == -EEXIST;
		found->is_leaderless |= err == -ESRCH && tid == pid;
		if (err == -EEXIST || err == -ESRCH)
			err = 0; /* a followed thread has made it; or it ended meanwhile */
	}
	return err;
}

/* A list ends early where a thread in it has just ended; their number is known all the same. Those of ours that end
 * stay in it until the hub's thread has time for them. */
static bool has_more(pid_t pid, const struct found *found)
{
	return kymo_count_threads(pid) > found->n_followed + found->is_leaderless;
}

struct following {
	struct kymo_strace *s;
	pid_t pid;
	pid_t last; /* the thread that an error is of */
	int err;
};

/* All threads that a process has; again, until no new one is found, as they make more meanwhile, and no other can be.
 */
static void follow_all(void *data)
{
	struct following *following = data;
	struct found found = { 0 };
	int n_lists = 0;

	do {
		n_lists = found.tids.n > found.n_ordered ? 1 : n_lists + 1;
		put_in_order(&found);
		following->err = follow_new(following->s, following->pid, &found, &following->last);
	} while (!following->err &&
		 (found.tids.n > found.n_ordered || (n_lists < IDLE_LISTS && has_more(following->pid, &found))));
	if (!following->err && !found.n_followed)
		following->err = -ESRCH;
	kymo_vec_deinit(&found.tids);
}

static int follow_process(struct kymo_strace *s, pid_t pid, pid_t *last_ret)
{
	struct following following = { .s = s, .pid = pid, .last = pid };

	kymo_hub_run(s->tracing.hub, follow_all, &following);
	*last_ret = following.last;
	return following.err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int last_signal(const struct kymo_strace *s)
{
	return s->user->last_signal(s->user->data);
}

/* The process that the user has started is gone. */
static bool is_alone(const struct kymo_strace *s)
{
	struct pollfd front = { .fd = s->user->front, .events = POLLIN };

	return s->user->front >= 0 && poll(&front, 1, 0) > 0;
}

/* The user wants no more of it, or is gone, or is not to be told. */
static bool is_given_up(const struct kymo_strace *s)
{
	return last_signal(s) || s->stream.is_stuck || s->stream.write_error || is_alone(s);
}

/* Whether the pipe has something to read; false when it is time to end a delay, or the user is gone. */
static bool wait_until(const struct kymo_strace *s, uint64_t time_ns)
{
	struct pollfd fds[] = { { .fd = s->tracing.done[0], .events = POLLIN },
				{ .fd = s->user->front, .events = POLLIN } };
	const uint64_t now = kymo_now_ns(), rest = time_ns > now ? time_ns - now : 0;
	const struct timespec limit = { .tv_sec = (time_t)(rest / 1000000000), .tv_nsec = (long)(rest % 1000000000) };

	return ppoll(fds, kymo_countof(fds), time_ns == UINT64_MAX ? NULL : &limit, NULL) > 0 && fds[0].revents;
}

/* True: time was up (--for), and threads are left. */
static bool wait_for_end(struct kymo_strace *s)
{
	const uint64_t until = s->request->target.for_ns ? kymo_now_ns() + s->request->target.for_ns : UINT64_MAX;
	char why = STRACE_DELAYED;

	set_stage(s, STRACE_TRACING);
	while (s->n_threads && why != STRACE_END && !is_alone(s) && kymo_now_ns() < until) {
		const uint64_t next = strace_delays_end(&s->tracing.delays, kymo_now_ns());

		if (wait_until(s, next < until ? next : until) && read(s->tracing.done[0], &why, 1) < 0)
			why = STRACE_DELAYED;
	}
	return s->n_threads && why != STRACE_END && kymo_now_ns() >= until;
}

static int open_own(struct kymo_strace *s)
{
	int err = kymo_hub_create(&s->tracing.hub);

	if (!err)
		kymo_hub_serve(s->tracing.hub); /* if that is not possible, later tracers are told that the process is
						   being traced */
	if (!err && s->request->target.follows)
		err = kymo_inner_create(s->tracing.hub, &s->tracing.inner);
	return err;
}

static void close_hub(struct kymo_strace *s)
{
	kymo_inner_stop(s->tracing.inner);
	kymo_hub_destroy(s->tracing.hub);
	kymo_inner_destroy(s->tracing.inner);
	s->tracing.inner = NULL;
	s->tracing.hub = NULL;
	s->tracing.n_cut = 0;
}

static void pick(const struct kymo_strace *s, uint64_t *calls)
{
	const bool shows_restarts = kymo_syscall_set_has(&s->request->which.set, SYS_restart_syscall);

	for (unsigned int i = 0; i < KYMO_CALL_NUMBERS; i++)
		if (kymo_syscall_set_has(&s->request->which.set, i) ||
		    (shows_restarts && kymo_remote_has_restart_block(i)) ||
		    (s->request->target.injections && strace_injections_have(s->request->target.injections, i)))
			calls[i / 64] |= 1ull << (i % 64);
	if (s->tracing.inner)
		kymo_inner_pick(calls);
}

static int launch_command(const struct kymo_strace *s, char **command, pid_t *ret)
{
	uint64_t calls[KYMO_CALL_NUMBERS / 64] = { 0 };

	kymo_hub_launch_as(s->tracing.hub, s->request->target.identity);
	if (!s->request->target.picks)
		return kymo_hub_launch(s->tracing.hub, 0, command, ret);
	pick(s, calls);
	return kymo_hub_launch_picking(s->tracing.hub, KYMO_LAUNCH_EXITKILL, command, calls, ret);
}

static struct kymo_error *trace_command(struct kymo_strace *s, char **command, int *status_ret)
{
	pid_t pid, last;
	int err = open_own(s);

	if (err)
		return kymo_begin_error(err);
	if (is_alone(s))
		return kymo_error_create(KYMO_ERROR_GONE, "%s was not run: the kymo that was to wait for it is gone",
					 command[0]);
	err = launch_command(s, command, &pid);
	s->user->leave_job(s->user->data);
	if (err)
		return kymo_error_errno(err, "cannot run %s", command[0]);
	err = follow_process(s, pid, &last);
	if (!err)
		err = kymo_hub_start(s->tracing.hub, pid);
	if (err)
		return kymo_trace_error(pid, err);
	s->running = wait_for_end(s) ? pid : 0;
	if (s->running || (is_given_up(s) && s->n_threads)) {
		*status_ret = last_signal(s);
		return NULL;
	}
	err = kymo_hub_wait(s->tracing.hub, pid, status_ret);
	return err ? kymo_error_errno(err, "cannot wait for %s", command[0]) : NULL;
}

/* Which children to follow, for kymo_hub_reach(). */
struct wanted {
	struct kymo_strace *s;
	const pid_t *pids;
	size_t n;
	pid_t failed; /* the process that an error is of */
};

static int open_for(void *data)
{
	return open_own(((const struct wanted *)data)->s);
}

static int attach_for(void *data, pid_t *busy_ret)
{
	struct wanted *wanted = data;
	int err = 0;

	for (size_t i = 0; i < wanted->n && !err; i++) {
		wanted->failed = *busy_ret = wanted->pids[i];
		err = follow_process(wanted->s, wanted->pids[i], busy_ret);
	}
	return err;
}

static void close_for(void *data)
{
	close_hub(((const struct wanted *)data)->s);
}

static bool is_given_up_for(void *data)
{
	return is_given_up(((const struct wanted *)data)->s);
}

static int follow_somehow(struct wanted *wanted)
{
	const struct kymo_reach reach = {
		.hub = &wanted->s->tracing.hub,
		.data = wanted,
		.open = open_for,
		.attach = attach_for,
		.close = close_for,
		.is_given_up = is_given_up_for,
	};

	return kymo_hub_reach(&reach);
}

static struct kymo_error *trace_processes(struct kymo_strace *s, const pid_t *pids, size_t n)
{
	struct wanted wanted = { s, pids, n, pids[0] };
	int err;

	s->user->leave_job(s->user->data);
	err = follow_somehow(&wanted);
	if (err == -EPERM && !s->tracing.hub)
		return kymo_begin_error(err);
	if (err)
		return kymo_trace_error(wanted.failed, err);
	wait_for_end(s);
	if (!is_given_up(s) && s->tracing.n_cut)
		s->tracing.cut = kymo_hub_failure(s->tracing.hub);
	return NULL;
}

/* Our own engines go, and the hub, too, if it has no other use: others are connected to it, or it waits for the
 * command. */
static void leave_hub(struct kymo_strace *s)
{
	kymo_inner_stop(s->tracing.inner);
	set_stage(s, STRACE_OVER);
	if (!s->tracing.hub || (kymo_hub_hand_over(s->tracing.hub, -1, 0) != -EAGAIN && !s->running))
		close_hub(s);
	strace_let_go(s);
}

struct kymo_error *kymo_strace_run(struct kymo_strace *s, char **command, const pid_t *pids, size_t n, int *status_ret)
{
	struct kymo_error *error;

	*status_ret = 0;
	if (pipe2(s->tracing.done, O_CLOEXEC))
		return kymo_error_errno(errno, "cannot make a pipe");
	s->tracing.stacks = s->request->look.stack_traces ? kymo_stacks_create() : NULL;
	if (s->request->look.stack_traces && !s->tracing.stacks)
		return &kymo_error_no_memory;
	s->had_several = n > 1 || (n && kymo_count_threads(pids[0]) > 1);
	s->tracing.is_command = command;
	s->user->begin(command, s->tracing.done[1], s->user->data);
	error = command ? trace_command(s, command, status_ret) : trace_processes(s, pids, n);
	leave_hub(s);
	strace_delays_end(&s->tracing.delays, UINT64_MAX);
	kymo_stacks_destroy(s->tracing.stacks);
	s->tracing.stacks = NULL;
	/* The pipe stays: a signal may come until the end. */
	return error;
}

static void empty_pipe(int fd)
{
	char bytes[64];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
}

int kymo_strace_wait(struct kymo_strace *s)
{
	kymo_cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, s->running, 0);
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN },
				{ .fd = s->tracing.done[0], .events = POLLIN },
				{ .fd = s->user->front, .events = POLLIN } };
	int status = 0;

	while (pidfd >= 0 && !fds[0].revents) {
		empty_pipe(s->tracing.done[0]); /* threads that are let go of write to it, too; a signal is known of
					   from here on, or is in it */
		if (last_signal(s) || fds[2].revents)
			return last_signal(s);
		if (poll(fds, kymo_countof(fds), -1) < 0)
			fds[0].revents = fds[2].revents = 0;
	}
	if (s->tracing.hub)
		kymo_hub_wait(s->tracing.hub, s->running, &status);
	else
		while (waitpid(s->running, &status, 0) < 0 && errno == EINTR)
			;
	return status;
}

bool kymo_strace_has_hub(const struct kymo_strace *s)
{
	return s->tracing.hub;
}

void kymo_strace_serve(struct kymo_strace *s)
{
	empty_pipe(s->tracing.done[0]); /* from here on a signal is known of, or is in it */
	while (!last_signal(s) && kymo_hub_hand_over(s->tracing.hub, s->tracing.done[0], -1) == -EINTR)
		empty_pipe(s->tracing.done[0]);
	close_hub(s);
}
