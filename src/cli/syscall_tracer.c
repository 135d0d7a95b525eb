/*
 * Engines that see system calls, one for each thread. The thread's struct is the engine's data, and goes with it.
 *
 * Everything but cli_syscalls_run() happens on the hub's thread, one callback at a time, so nothing here is locked. The main thread waits
 * until the pipe says that there is no engine left, or that the user has interrupted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/signals.h"
#include "cli/syscalls.h"
#include "proc/proc.h"
#include "stack/stack.h"

enum { IDLE_LISTS = 100 };

#define SEEN (KYMO_MASK_PICKED_CALLS | KYMO_EVENTS_SYSCALL | KYMO_EVENTS_SIGNAL | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_DEATH | KYMO_EVENT_REAP | KYMO_EVENT_JCTL)

/* ---- the memory and descriptors of a thread ---------------------------------------------------------------------------- */

static size_t read_memory(void *context, uint64_t address, void *out, size_t size)
{
	const struct cli_syscall_thread *thread = context;

	return kymo_engine_read(thread->engine, address, out, size) ? 0 : size;
}

static size_t read_fd_path(void *context, int fd, char *out, size_t size)
{
	const struct cli_syscall_thread *thread = context;
	char link[64];
	ssize_t n;

	if (fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", thread->tid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", thread->tid, fd);
	n = readlink(link, out, size);
	return n < 0 ? 0 : (size_t)n;
}

/* ---- callbacks --------------------------------------------------------------------------------------------------------- */

static bool touches_path(const struct cli_syscall_thread *thread)
{
	const struct cli_syscalls *s = thread->owner;
	struct kymo_syscall_target target = thread->target;

	if (!s->path)
		return true;
	target.fd_path = read_fd_path;
	return kymo_syscall_touches(&thread->call, &target, s->path) ||
	       (s->real_path && kymo_syscall_touches(&thread->call, &target, s->real_path));
}

/* Whether it touches the path. */
static bool begin_call(struct cli_syscall_thread *thread, const struct kymo_syscall_report *report)
{
	const struct cli_syscalls *s = thread->owner;
	bool touches;

	cli_syscall_enter(thread, report->number, report->args, report->sp);
	cli_syscall_set_mode(thread, report->arch == AUDIT_ARCH_I386);
	thread->is_shown = kymo_syscall_set_has(&s->set, thread->call.number);
	touches = (thread->is_shown || s->injections) && touches_path(thread);
	thread->is_shown &= touches;
	if (thread->is_shown)
		cli_syscall_stack_take(thread, true);
	cli_syscall_show_entry(thread);
	thread->injection = NULL;
	return touches;
}

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_syscall_report *report)
{
	struct cli_syscall_thread *thread = data;
	bool touches;

	thread->engine = engine;
	touches = begin_call(thread, report);
	thread->entered_ns = kymo_now_ns();
	return thread->owner->injections && touches && !thread->is_i386 ? cli_syscall_inject_enter(thread) : KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
}

/* A call whose beginning others were told before this one came to them is shown when it returns. */
static unsigned int on_exit_of_call(struct kymo_engine *engine, void *data, enum kymo_action action,
				    const struct kymo_syscall_report *report)
{
	struct cli_syscall_thread *thread = data;
	unsigned int answer;

	thread->engine = engine;
	if (!thread->is_in_call && !report->is_entry_known)
		return KYMO_ACTION_RESUME;
	if (!thread->is_in_call)
		begin_call(thread, report);
	answer = cli_syscall_inject_leave(thread, report);
	cli_syscall_stack_saw(thread);
	cli_syscall_leave(thread, report->result, kymo_now_ns());
	return answer;
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action, struct kymo_signal_report *report)
{
	struct cli_syscall_thread *thread = data;

	thread->engine = engine;
	cli_syscall_stack_take(thread, false);
	cli_syscall_signal(thread, &report->info);
	return KYMO_ACTION_RESUME | report->verdict;
}

static unsigned int on_job_control(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_jctl_report *report)
{
	struct cli_syscall_thread *thread = data;
	const struct cli_syscalls *s = thread->owner;

	if (report->signal != SIGCONT && !s->counts)
		(s->json ? cli_syscall_json_stop : cli_syscall_line_stop)(thread, report->signal);
	return KYMO_ACTION_RESUME;
}

static int follow(struct cli_syscalls *s, pid_t tid, pid_t pid);

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_clone_report *report)
{
	struct cli_syscall_thread *thread = data;
	struct cli_syscalls *s = thread->owner;
	int err;

	if (!s->follows)
		return KYMO_ACTION_RESUME;
	err = follow(s, report->child, report->kind == KYMO_CLONE_THREAD ? thread->pid : report->child);
	if (err && err != -ESRCH && err != -EEXIST) {
		cli_warn("cannot follow process %d: %s", report->child, strerror(-err));
		s->has_failed = true;
	}
	return KYMO_ACTION_RESUME;
}

/* A thread that calls exec becomes the first of its process. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_exec_report *report)
{
	struct cli_syscall_thread *thread = data;

	cli_syscall_stack_forget(thread);
	thread->tid = kymo_engine_tid(engine);
	thread->is_starting = false;
	return KYMO_ACTION_RESUME;
}

/* It never returns from the call that it is in. */
static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct cli_syscall_thread *thread = data;

	thread->engine = engine;
	thread->has_ended = true;
	cli_syscall_inject_end(thread);
	cli_syscall_end_call(thread);
	return KYMO_ACTION_RESUME;
}

/* A first thread is not told to be gone before its process is, or another one has its place. */
static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct cli_syscall_thread *thread = data;
	const struct cli_syscalls *s = thread->owner;

	if (thread->tid == thread->pid)
		cli_syscall_stack_forget(thread);
	if (!report->superseded_by || thread->tid != thread->pid)
		cli_syscall_end(thread, report->status);
	else if (!s->counts)
		(s->json ? cli_syscall_json_superseded : cli_syscall_line_superseded)(thread, report->superseded_by);
}

/* On the main thread where that holds the last reference of one that has ended while it was delayed. */
static void on_release(void *data)
{
	struct cli_syscall_thread *thread = data;
	struct cli_syscalls *s = thread->owner;

	if (!thread->has_ended && s->open == thread && !s->is_over)
		cli_syscall_line_let_go(s);
	kymo_line_deinit(&thread->text);
	free(thread->stack);
	free(thread->made);
	s->n_cut += !thread->has_ended;
	free(thread);
	if (!--s->n_threads && !s->is_attaching)
		cli_syscalls_wake(s, CLI_SYSCALLS_END);
}

static const struct kymo_engine_ops ops = {
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

/* ---- threads ------------------------------------------------------------------------------------------------------------- */

/* A negative errno of kymo_engine_attach(). -EEXIST: it is followed already. */
static int follow(struct cli_syscalls *s, pid_t tid, pid_t pid)
{
	struct cli_syscall_thread *thread = calloc(1, sizeof(*thread));
	struct kymo_engine *engine;
	int err;

	if (!thread)
		return -ENOMEM;
	if (s->inner)
		kymo_inner_follow(s->inner, tid, pid); /* without it, it can't trace, as under every tracer */
	*thread = (struct cli_syscall_thread){ .owner = s, .tid = tid, .pid = pid, .is_starting = s->is_command && !s->n_threads, .entered_ns = kymo_now_ns() };
	thread->target = (struct kymo_syscall_target){ .context = thread, .read = read_memory, .string_size = s->string_size };
	if (s->fd_paths)
		thread->target.fd_path = read_fd_path;
	err = kymo_engine_attach(s->hub, tid, KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS, &ops, thread, &engine);
	if (err) {
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
static int follow_new(struct cli_syscalls *s, pid_t pid, struct found *found, pid_t *last_ret)
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
		err = kymo_vec_push(&found->tids, tid) ? follow(s, tid, pid) : -ENOMEM;
		found->n_followed += !err || err == -EEXIST;
		found->is_leaderless |= err == -ESRCH && tid == pid;
		if (err == -EEXIST || err == -ESRCH)
			err = 0; /* a followed thread has made it; or it ended meanwhile */
	}
	return err;
}

/* A list ends early where a thread in it has just ended; their number is known all the same. Those of ours that end stay in it until the hub's thread has time for them. */
static bool has_more(pid_t pid, const struct found *found)
{
	return kymo_count_threads(pid) > found->n_followed + found->is_leaderless;
}

struct following {
	struct cli_syscalls *s;
	pid_t pid;
	pid_t last; /* the thread that an error is of */
	int err;
};

/* All threads that a process has; again, until no new one is found, as they make more meanwhile, and no other can be. */
static void follow_all(void *data)
{
	struct following *following = data;
	struct found found = { 0 };
	int n_lists = 0;

	do {
		n_lists = found.tids.n > found.n_ordered ? 1 : n_lists + 1;
		put_in_order(&found);
		following->err = follow_new(following->s, following->pid, &found, &following->last);
	} while (!following->err && (found.tids.n > found.n_ordered || (n_lists < IDLE_LISTS && has_more(following->pid, &found))));
	if (!following->err && !found.n_followed)
		following->err = -ESRCH;
	kymo_vec_deinit(&found.tids);
}

static int follow_process(struct cli_syscalls *s, pid_t pid, pid_t *last_ret)
{
	struct following following = { .s = s, .pid = pid, .last = pid };

	kymo_hub_run(s->hub, follow_all, &following);
	*last_ret = following.last;
	return following.err;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

void cli_syscalls_wake(const struct cli_syscalls *s, enum cli_syscalls_wake why)
{
	const char byte = (char)why;

	kymo_write_all(s->done[1], &byte, 1);
}

/* The user wants no more of it, or is gone, or is not to be told. */
static bool is_given_up(const struct cli_syscalls *s)
{
	return cli_last_signal() || s->is_stuck || s->write_error || cli_apart_is_alone(&s->apart);
}

/* Whether the pipe has something to read; false when it is time to end a delay, or the user is gone. */
static bool wait_until(const struct cli_syscalls *s, uint64_t time_ns)
{
	struct pollfd fds[] = { { .fd = s->done[0], .events = POLLIN }, { .fd = s->apart.front, .events = POLLIN } };
	const uint64_t now = kymo_now_ns(), rest = time_ns > now ? time_ns - now : 0;
	const struct timespec limit = { .tv_sec = (time_t)(rest / 1000000000), .tv_nsec = (long)(rest % 1000000000) };

	return ppoll(fds, kymo_countof(fds), time_ns == UINT64_MAX ? NULL : &limit, NULL) > 0 && fds[0].revents;
}

static void wait_for_end(struct cli_syscalls *s)
{
	char why = CLI_SYSCALLS_DELAYED;

	s->is_attaching = false;
	while (s->n_threads && why != CLI_SYSCALLS_END && !cli_apart_is_alone(&s->apart)) {
		const uint64_t next = s->injections ? cli_syscall_injections_end_delays(s->injections, kymo_now_ns()) : UINT64_MAX;

		if (wait_until(s, next) && read(s->done[0], &why, 1) < 0)
			why = CLI_SYSCALLS_DELAYED;
	}
}

static int open_own(struct cli_syscalls *s)
{
	int err = kymo_hub_create(&s->hub);

	if (!err)
		kymo_hub_serve(s->hub); /* where that is not possible, whoever comes later is told that the process is being traced */
	if (!err && s->follows)
		err = kymo_inner_create(s->hub, &s->inner);
	return err;
}

static void close_hub(struct cli_syscalls *s)
{
	kymo_inner_stop(s->inner);
	kymo_hub_destroy(s->hub);
	kymo_inner_destroy(s->inner);
	s->inner = NULL;
	s->hub = NULL;
	s->n_cut = 0;
}

/* restart_syscall tells which call it continues. */
static bool may_be_continued(unsigned int number)
{
	return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_poll || number == SYS_futex;
}

static void pick(const struct cli_syscalls *s, uint64_t *calls)
{
	const bool shows_restarts = kymo_syscall_set_has(&s->set, SYS_restart_syscall);

	for (unsigned int i = 0; i < KYMO_CALL_NUMBERS; i++)
		if (kymo_syscall_set_has(&s->set, i) || (shows_restarts && may_be_continued(i)) || (s->injections && cli_syscall_injections_have(s->injections, i)))
			calls[i / 64] |= 1ull << (i % 64);
	if (s->inner)
		kymo_inner_pick(calls);
}

static int launch(const struct cli_syscalls *s, char **command, pid_t *ret)
{
	uint64_t calls[KYMO_CALL_NUMBERS / 64] = { 0 };

	if (!s->picks)
		return kymo_hub_launch(s->hub, 0, command, ret);
	pick(s, calls);
	return kymo_hub_launch_picking(s->hub, KYMO_LAUNCH_EXITKILL, command, calls, ret);
}

static struct kymo_error *trace_command(struct cli_syscalls *s, char **command, int *status_ret)
{
	pid_t pid, last;
	int err = open_own(s);

	if (err)
		return kymo_begin_error(err);
	if (cli_apart_is_alone(&s->apart))
		return kymo_error_create(KYMO_ERROR_GONE, "nobody waits for %s any more", command[0]);
	err = launch(s, command, &pid);
	cli_apart_leave_job();
	if (err)
		return kymo_error_errno(err, "cannot run %s", command[0]);
	err = follow_process(s, pid, &last);
	if (!err)
		err = kymo_hub_start(s->hub, pid);
	if (err)
		return kymo_trace_error(pid, err);
	wait_for_end(s);
	if (is_given_up(s) && s->n_threads) {
		*status_ret = cli_last_signal();
		return NULL;
	}
	err = kymo_hub_wait(s->hub, pid, status_ret);
	return err ? kymo_error_errno(err, "cannot wait for %s", command[0]) : NULL;
}

/* Who is to be followed, for kymo_hub_reach(). */
struct wanted {
	struct cli_syscalls *s;
	pid_t pid;
};

static int open_for(void *data)
{
	return open_own(((const struct wanted *)data)->s);
}

static int attach_for(void *data, pid_t *busy_ret)
{
	const struct wanted *wanted = data;

	*busy_ret = wanted->pid;
	return follow_process(wanted->s, wanted->pid, busy_ret);
}

static void close_for(void *data)
{
	close_hub(((const struct wanted *)data)->s);
}

static bool is_given_up_for(void *data)
{
	return is_given_up(((const struct wanted *)data)->s);
}

static int follow_somehow(struct cli_syscalls *s, pid_t pid)
{
	struct wanted wanted = { s, pid };
	const struct kymo_reach reach = {
		.hub = &s->hub,
		.data = &wanted,
		.open = open_for,
		.attach = attach_for,
		.close = close_for,
		.is_given_up = is_given_up_for,
	};

	return kymo_hub_reach(&reach);
}

static struct kymo_error *trace_process(struct cli_syscalls *s, pid_t pid)
{
	int err;

	cli_apart_leave_job();
	err = follow_somehow(s, pid);
	if (err == -EPERM && !s->hub)
		return kymo_begin_error(err);
	if (err)
		return kymo_trace_error(pid, err);
	wait_for_end(s);
	if (!is_given_up(s) && s->n_cut)
		s->cut = kymo_hub_failure(s->hub);
	return NULL;
}

static int wake_up; /* for the signal handler */

static void on_wish(int number)
{
	kymo_write_all(wake_up, (const char[]){ CLI_SYSCALLS_END }, 1);
}

/* Our own engines go, and the hub, too, if nobody else has any use for it. */
static void leave(struct cli_syscalls *s)
{
	kymo_inner_stop(s->inner);
	s->is_over = true;
	if (!s->hub || kymo_hub_linger(s->hub, -1, 0) != -EAGAIN)
		close_hub(s);
	cli_syscall_line_let_go(s);
}

struct kymo_error *cli_syscalls_run(struct cli_syscalls *s, char **command, pid_t pid, int *status_ret)
{
	struct kymo_error *error;

	*status_ret = 0;
	if (pipe2(s->done, O_CLOEXEC))
		return kymo_error_errno(errno, "cannot make a pipe");
	s->stacks = s->stack_traces ? kymo_stacks_create() : NULL;
	if (s->stack_traces && !s->stacks)
		return &kymo_error_no_memory;
	s->is_attaching = true;
	s->is_command = command;
	wake_up = s->done[1];
	cli_catch_signals(command, SA_RESTART, on_wish);
	cli_apart_take_signals(&s->apart);
	error = command ? trace_command(s, command, status_ret) : trace_process(s, pid);
	leave(s);
	if (s->injections)
		cli_syscall_injections_end_delays(s->injections, UINT64_MAX);
	kymo_stacks_destroy(s->stacks);
	s->stacks = NULL;
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

void cli_syscalls_outlive(struct cli_syscalls *s, int status)
{
	char sentence[200];

	if (!s->hub)
		return;
	snprintf(sentence, sizeof(sentence), "what happened from some point on is not shown: nobody has taken the lines for %d seconds, and others trace the same", KYMO_ANSWER_MS / 1000);
	cli_forget_signals();
	empty_pipe(s->done[0]);	/* from here on a signal is known of, or is in it */
	cli_apart_dismiss(&s->apart, status, s->is_stuck ? sentence : NULL);
	while (!cli_last_signal() && kymo_hub_linger(s->hub, s->done[0], -1) == -EINTR)
		empty_pipe(s->done[0]);
	close_hub(s);
}
