/*
 * System calls by the kernel's tracepoints: no thread is stopped. What is seen has happened already; memory is what the
 * kernel has copied.
 *
 * A call of which something could not be copied as it was made is shown when it returns, with what is there then.
 */
#include "strace/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/uprobe.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vec.h"
#include "hub/launch.h"
#include "kernel/calls.h"
#include "procfs/info.h"
#include "strace/events.h"
#include "strace/state.h"
#include "strace/wake.h"
#include "syscall/call.h"
#include "syscall/copies.h"
#include "syscall/line.h"
#include "syscall/names.h"
#include "syscall/sets.h"

enum { ROUND_MS = 10 };

/* A thread, and what is known of its memory. */
struct seen {
	struct strace_thread thread; /* the first member */
	struct kymo_copies
		known[2]; /* of the call at hand; and what was copied when it returned, of one that is late */
	void *saved;      /* of a call that waits for its return */
	size_t saved_size;
	bool is_late;
};

struct watch {
	struct kymo_strace *s;
	struct kymo_kernel_calls *calls;
	KYMO_VEC(struct seen *) threads; /* by id */
	int64_t since_1970_ns;           /* to be added to the monotonic clock */
	uint64_t lost;                   /* told so far */
	int pidfd, go;
	pid_t pid;
};

/* ---- threads --------------------------------------------------------------------------------- */

static size_t read_copies(void *context, uint64_t address, void *out, size_t size)
{
	const struct seen *seen = context;

	return kymo_copies_read(seen->known, kymo_countof(seen->known), address, out, size);
}

static size_t place_of(const struct watch *w, pid_t tid)
{
	return kymo_partition_point(i, w->threads.n, w->threads.items[i]->thread.tid < tid);
}

/* As the record has it: a thread may have ended by now. Bytes that a terminal might take for more than letters are
 * shown as '?'. */
static void set_name(struct strace_thread *thread, const char *name)
{
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof(thread->name); n++)
		thread->name[n] = name[n] < ' ' || name[n] > '~' ? '?' : name[n];
	thread->name[n] = '\0';
}

/* NULL where memory is out. */
static struct seen *get_thread(struct watch *w, pid_t tid, pid_t pid)
{
	const size_t at = place_of(w, tid);
	struct seen *seen;

	if (at < w->threads.n && w->threads.items[at]->thread.tid == tid)
		return w->threads.items[at];
	seen = calloc(1, sizeof(*seen));
	if (!seen || !kymo_vec_push(&w->threads, seen)) {
		free(seen);
		return NULL;
	}
	memmove(&w->threads.items[at + 1], &w->threads.items[at], (w->threads.n - 1 - at) * sizeof(seen));
	w->threads.items[at] = seen;
	seen->thread = (struct strace_thread){ .owner = w->s, .tid = tid, .pid = pid };
	seen->thread.target = (struct kymo_syscall_target){ .context = seen,
							    .read = read_copies,
							    .string_size = w->s->request->look.string_size,
							    .style = w->s->request->look.style };
	w->s->n_threads++;
	return seen;
}

static void destroy_seen(struct seen *seen)
{
	kymo_line_deinit(&seen->thread.text);
	free(seen->saved);
	free(seen);
}

static void drop_seen(struct watch *w, struct seen *seen)
{
	const size_t at = place_of(w, seen->thread.tid);

	memmove(&w->threads.items[at], &w->threads.items[at + 1], (w->threads.n - 1 - at) * sizeof(seen));
	w->threads.n--;
	w->s->n_threads--;
	if (w->s->open == &seen->thread)
		w->s->open = NULL;
	destroy_seen(seen);
}

/* ---- what happens ---------------------------------------------------------------------------- */

/* A beginning that can't be shown yet is kept. */
static bool keep_copies(struct seen *seen, const struct kymo_copies *copies)
{
	void *bytes = realloc(seen->saved, copies->size + 1);

	if (!bytes)
		return false;
	memcpy(bytes, copies->bytes, copies->size);
	seen->saved = bytes;
	seen->saved_size = copies->size;
	return true;
}

static void show_late(struct seen *seen, const struct kymo_copies *later)
{
	if (!seen->is_late)
		return;
	seen->is_late = false;
	seen->known[0] = (struct kymo_copies){ seen->saved, seen->saved_size };
	if (later)
		seen->known[1] = *later;
	strace_show_entry(&seen->thread);
	seen->known[1] = (struct kymo_copies){ 0 };
}

static bool enter_call(struct seen *seen, const struct kymo_kernel_call *call)
{
	struct strace_thread *thread = &seen->thread;

	strace_enter(thread, call->number, call->args, call->stack_pointer);
	strace_set_mode(thread, call->is_i386);
	thread->is_shown = true; /* all that come from the kernel are wanted */
	thread->entered_ns = call->ns;
	seen->is_late = call->is_incomplete;
	if (seen->is_late)
		return keep_copies(seen, &call->copies);
	seen->known[0] = call->copies;
	strace_show_entry(thread);
	return true;
}

/* As calls of threads have it. */
static uint64_t number_of(const struct kymo_kernel_call *call)
{
	return call->is_i386 ? kymo_syscall_from_i386(call->number) : call->number;
}

/* A thread that executes a program becomes the first of its process; the one that was it has ended by then. */
static struct seen *find_who_executed(struct watch *w, struct seen *first, const struct kymo_kernel_call *call)
{
	if (first->thread.is_in_call || call->result || !kymo_syscall_replaces_memory(number_of(call)))
		return first;
	for (size_t i = 0; i < w->threads.n; i++) {
		struct seen *seen = w->threads.items[i];

		if (seen->thread.pid != call->pid || !seen->thread.is_in_call ||
		    seen->thread.call.number != number_of(call))
			continue;
		w->threads.items[place_of(w, first->thread.tid)] = seen;
		w->threads.items[i] = first;
		first->thread.tid = seen->thread.tid;
		seen->thread.tid = call->tid;
		drop_seen(w, first);
		return seen;
	}
	return first;
}

/* A thread may return from another call than the known one: the beginning, or an end, was lost. */
static void leave_call(struct seen *seen, const struct kymo_kernel_call *call)
{
	struct strace_thread *thread = &seen->thread;

	if (!thread->is_in_call || (number_of(call) != thread->call.number && call->number != UINT64_MAX))
		return;
	show_late(seen, &call->copies);
	seen->known[0] = call->copies;
	strace_leave(thread, call->result, call->ns);
}

static void tell_lost(struct watch *w, uint64_t lost)
{
	const uint64_t n = lost - w->lost;

	if (lost <= w->lost)
		return;
	w->lost = lost;
	if (w->s->sink)
		w->s->sink->lost(w->s, n);
}

static struct kymo_error *see_call(const struct kymo_kernel_call *call, void *data)
{
	struct watch *w = data;
	struct seen *seen;

	tell_lost(w, call->lost);
	if (call->event == KYMO_KERNEL_CALL_SIGNAL && call->result == SIGKILL)
		return NULL; /* it has no signal stop, for tracers */
	seen = get_thread(w, call->tid, call->pid);
	if (!seen)
		return &kymo_error_no_memory;
	if (call->name && *call->name)
		set_name(&seen->thread, call->name);
	if (w->s->request->times.clock || w->s->request->times.relative_times) {
		const uint64_t ns = (uint64_t)((int64_t)call->ns + w->since_1970_ns);

		w->s->now =
			(struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	}
	switch (call->event) {
	case KYMO_KERNEL_CALL_ENTERED:
		if (!enter_call(seen, call))
			return &kymo_error_no_memory;
		break;
	case KYMO_KERNEL_CALL_LEFT:
		seen = find_who_executed(w, seen, call);
		leave_call(seen, call);
		break;
	case KYMO_KERNEL_CALL_SIGNAL:
		strace_signal(&seen->thread, call->siginfo);
		break;
	case KYMO_KERNEL_CALL_ENDED:
		show_late(seen, NULL);
		seen->known[0] = (struct kymo_copies){ 0 };
		strace_end_call(&seen->thread);
		strace_end(&seen->thread, (int)call->result);
		drop_seen(w, seen);
		return NULL;
	}
	seen->known[0] = (struct kymo_copies){ 0 };
	return NULL;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static bool wants(void *context, unsigned int number)
{
	const struct watch *w = context;

	return kymo_syscall_set_has(&w->s->request->which.set, number);
}

static bool wants_i386(void *context, unsigned int number)
{
	const struct watch *w = context;

	return kymo_syscall_set_has(&w->s->request->which.set, kymo_syscall_from_i386(number));
}

static size_t copies(void *context, unsigned int number, bool is_leaving, struct kymo_copy *ret)
{
	const struct watch *w = context;

	return w->s->sink ? kymo_syscall_copies(number, is_leaving, w->s->request->look.string_size, ret) : 0;
}

static bool replaces_memory(void *context, unsigned int number)
{
	return kymo_syscall_replaces_memory(number);
}

static struct kymo_error *begin_watch(struct watch *w, pid_t pid, bool is_command)
{
	const struct kymo_strace *s = w->s;
	const struct kymo_kernel_calls_options options = {
		.pid = pid,
		.thread = is_command && !s->request->target.follows ? pid : 0,
		.follow = pid && s->request->target.follows,
		.has_times = s->request->times.clock || s->request->times.relative_times ||
			     s->request->times.durations || s->request->output.kind != KYMO_STRACE_LINES ||
			     s->request->look.json,
		.names = s->request->look.shows_names,
		.signals = s->sink,
		.buffer_size = s->request->target.buffer_size,
		.layout = &kymo_call_layout,
		.context = w,
		.wants = wants,
		.wants_i386 = wants_i386,
		.copies = copies,
		.replaces_memory = replaces_memory,
	};

	return kymo_kernel_calls_create(&options, &w->calls);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* And all of their ends are in the ring. */
static bool have_all_ended(const struct watch *w)
{
	return !kymo_kernel_calls_has_processes(w->calls) && !kymo_kernel_calls_may_be_late(w->calls);
}

/* Until the process has ended, all that are followed have, or the user ends it. Then what is in the ring is all there
 * is. */
static struct kymo_error *watch_on(struct watch *w, bool is_command)
{
	const uint64_t until = w->s->request->target.for_ns ? kymo_now_ns() + w->s->request->target.for_ns : UINT64_MAX;
	struct pollfd fds[] = { { .fd = w->s->tracing.done[0], .events = POLLIN },
				{ .fd = w->pidfd, .events = POLLIN } };
	const bool counts_processes = w->pid && w->s->request->target.follows;
	struct kymo_error *error = NULL;
	bool is_over = false, is_empty = true, is_last_round = false;

	while (!(is_over && is_empty) && !error) {
		/* With descendants an end of the first says nothing. */
		const int n = is_over ? 0 : poll(fds, counts_processes ? 1 : 2, is_empty ? ROUND_MS : 0);

		if (n < 0 && errno != EINTR)
			return kymo_error_errno(errno, "cannot wait for system calls");
		is_over |= n > 0 || is_last_round || (counts_processes && have_all_ended(w));
		if (!is_over && kymo_now_ns() >= until) {
			is_over = true;
			w->s->running = is_command ? w->pid : 0;
		}
		if (is_over)
			kymo_kernel_calls_detach(w->calls);
		error = kymo_kernel_calls_drain(w->calls, see_call, w, &is_empty);
		if (!error && (fflush(w->s->stream.file) || ferror(w->s->stream.file)))
			return NULL; /* the caller tells */
		/* Threads that end beside the one that the kernel counts last get one more round. */
		is_last_round = counts_processes && is_empty && !kymo_kernel_calls_has_processes(w->calls);
	}
	return error;
}

static void tell_missing(struct watch *w)
{
	const uint64_t lost = kymo_kernel_calls_lost(w->calls);

	tell_lost(w, lost);
	fflush(w->s->stream.file);
	if (lost)
		w->s->user->tell_lost(lost, w->s->user->data);
}

static int64_t ns_since_1970(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)kymo_now_ns();
}

static struct kymo_error *end_of_command(struct watch *w, const char *name, int *status_ret)
{
	const int options = w->s->user->last_signal(w->s->user->data) ? WNOHANG : 0;
	pid_t pid;

	do {
		pid = waitpid(w->pid, status_ret, options);
	} while (pid < 0 && errno == EINTR);
	if (!pid)
		*status_ret = w->s->user->last_signal(w->s->user->data);
	return pid < 0 ? kymo_error_errno(errno, "cannot wait for %s", name) : NULL;
}

static struct kymo_error *trace(struct watch *w, char **command, int *status_ret)
{
	struct kymo_error *error;

	if (w->pid) {
		w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
		if (w->pidfd < 0)
			return kymo_error_errno(errno, "cannot trace process %d", w->pid);
	}
	error = begin_watch(w, w->pid, command);
	if (error)
		return error;
	w->s->user->begin(command, w->s->tracing.done[1], w->s->user->data);
	if (command && kymo_write_all(w->go, "", 1))
		return kymo_error_create(KYMO_ERROR_GONE, "%s has ended before it was begun", command[0]);
	error = watch_on(w, command);
	if (w->s->open)
		strace_let_go(w->s);
	tell_missing(w);
	if (!error && command && !w->s->running)
		error = end_of_command(w, command[0], status_ret);
	return error;
}

struct kymo_error *kymo_strace_run_in_kernel(struct kymo_strace *s, char **command, pid_t pid, int *status_ret)
{
	struct watch w = { .s = s, .pid = pid, .pidfd = -1, .go = -1, .since_1970_ns = ns_since_1970() };
	struct kymo_error *error;
	int err;

	*status_ret = 0;
	s->had_several = pid && kymo_count_threads(pid) > 1;
	s->flushes_later = true;
	if (pipe2(s->tracing.done, O_CLOEXEC))
		return kymo_error_errno(errno, "cannot make a pipe");
	if (command) {
		err = kymo_command_fork(command, s->request->target.identity, &w.pid, &w.go);
		if (err)
			return kymo_error_errno(err, "cannot run %s", command[0]);
	}
	error = trace(&w, command, status_ret);
	if (w.go >= 0)
		close(w.go);
	if (error && command)
		waitpid(w.pid, &err, WNOHANG);
	kymo_kernel_calls_destroy(w.calls);
	for (size_t i = 0; i < w.threads.n; i++)
		destroy_seen(w.threads.items[i]);
	kymo_vec_deinit(&w.threads);
	if (w.pidfd >= 0)
		close(w.pidfd);
	s->now = (struct timespec){ 0 };
	/* The pipe stays: a signal may come until the end. */
	return error;
}
