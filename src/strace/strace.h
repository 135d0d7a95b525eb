/*
 * System calls of processes, seen and shown as strace shows them. Two sources see calls: a tracer, which has an engine
 * of a hub for each thread (tracer.h), and the kernel's tracepoints (kernel.h). Lines, JSON objects and a table of
 * counts are what is made of them. What is recorded of calls is in recorded/.
 *
 *     kymo_strace_create(&request, &user, fd, &strace);
 *     kymo_strace_run(strace, …) or kymo_strace_run_in_kernel(strace, …);
 *     result = kymo_strace_result(strace);
 *     kymo_strace_destroy(strace);
 */
#ifndef KYMO_STRACE_STRACE_H
#define KYMO_STRACE_STRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "syscall/call.h"
#include "syscall/sets.h"

struct kymo_identity;
struct kymo_strace;
struct kymo_strace_injections;

enum kymo_strace_clock { KYMO_STRACE_NO_TIME, KYMO_STRACE_TIME_OF_DAY, KYMO_STRACE_UNIX_TIME };

enum { KYMO_STRACE_QUIET_EXIT = 2, KYMO_STRACE_QUIET_MODE = 4, KYMO_STRACE_QUIET_EXEC = 8 };
enum {
	KYMO_STRACE_FD_PATH = 1,
	KYMO_STRACE_FD_SOCKET = 2,
	KYMO_STRACE_FD_DEVICE = 4,
	KYMO_STRACE_FD_PIDFD = 8,
	KYMO_STRACE_FD_ALL = 15
};
enum { KYMO_STRACE_PID_COMM = 1, KYMO_STRACE_PID_NAMESPACE = 2 };
enum { KYMO_STRACE_BUFFER_SIZE = 16 << 20 };
enum { KYMO_STRACE_COLUMNS_MAX = 9 };

/* All zero: strace's own. */
struct kymo_strace_columns {
	unsigned char shown[KYMO_STRACE_COLUMNS_MAX], n, order;
};

enum kymo_strace_output_kind {
	KYMO_STRACE_LINES,
	KYMO_STRACE_TABLE, /* -c: of counts */
	KYMO_STRACE_BOTH,  /* -C */
};

/* Which calls and signals are shown. */
struct kymo_strace_which {
	struct kymo_syscall_set set;
	KYMO_VEC(const char *) paths; /* -P, and where their links lead */
	/* Calls with such results; then lines are shown when the result is known. */
	bool hides_good, hides_failed, hides_unfinished;
	uint64_t hidden_signals; /* bit 0 is signal 1 */
	unsigned int quiet;      /* KYMO_STRACE_QUIET_… */
};

/* What a line has, and how. */
struct kymo_strace_look {
	struct kymo_syscall_set whole, raw; /* calls with whole structures; with numbers for arguments */
	size_t string_size;
	struct kymo_syscall_style style;
	unsigned int fds, pids; /* what is shown of descriptors and of ids: KYMO_STRACE_FD_…, KYMO_STRACE_PID_… */
	bool numbers, addresses, stack_traces;
	bool shows_names; /* of threads, beside their ids */
	bool json;
};

/* Times in a line, with so many digits of a second. */
struct kymo_strace_times {
	enum kymo_strace_clock clock;
	bool durations, relative_times;
	unsigned int clock_digits, relative_digits, duration_digits;
};

struct kymo_strace_output {
	enum kymo_strace_output_kind kind;
	struct kymo_strace_columns columns; /* of the table */
	bool to_file;                       /* lines do not go to stderr */
	bool separately;                    /* -ff: each thread has a file of its own */
};

/* What is traced, how long, and what is changed in it. */
struct kymo_strace_target {
	bool follows;
	bool leaves_on_exec; /* -b execve */
	bool picks;          /* a filter lets calls pass that are not shown; the command ends with kymo */
	const struct kymo_strace_injections *injections; /* or NULL */
	const struct kymo_identity *identity;            /* -u: of the command; or NULL: as kymo */
	uint64_t for_ns;                                 /* then tracing ends; 0: never */
	uint64_t buffer_size;                            /* of the kernel's source, bytes */
};

/* What the user wants. Nothing changes it once the trace has begun. */
struct kymo_strace_request {
	struct kymo_strace_which which;
	struct kymo_strace_look look;
	struct kymo_strace_times times;
	struct kymo_strace_output output;
	struct kymo_strace_target target;
};

/* What the command does for a trace, and knows of its user. */
struct kymo_strace_user {
	int front; /* can be read when the process that the user has started is gone; -1: this is it */
	/* A trace begins, of a command that it launches or not: a signal that ends it writes a zero byte to `wake` from
	 * here on. */
	void (*begin)(bool launches, int wake, void *data);
	/* The last signal that ended it, or 0. */
	int (*last_signal)(void *data);
	/* Signals of the terminal don't reach this process any more, but the children that there are. */
	void (*leave_job)(void *data);
	void (*warn)(const char *sentence, void *data);
	/* Of the kernel's source: so many beginnings and ends of calls were lost. */
	void (*tell_lost)(uint64_t n, void *data);
	/* With `separately`: where lines of that thread go. A negative errno; the user was told of it. */
	int (*open_own)(pid_t tid, FILE **ret, void *data);
	void *data;
};

/* How a trace has ended. */
struct kymo_strace_result {
	int write_error;    /* an errno: the stream takes no more; or 0 */
	bool is_stuck;      /* its reader does not take what is written, and is waited for no longer */
	bool is_incomplete; /* memory was out, or a process could not be followed */
	int cut;            /* why the hub that was joined has let go, a negative errno; or 0 */
	pid_t running;      /* its time is over, and this command runs on; or 0 */
};

/*
 * A trace whose lines, objects or table go to `fd`, which is the trace's from here on, also on an error; STDERR_FILENO
 * stays open. `request` and `user` must outlive it. NO_MEMORY.
 */
struct kymo_error *kymo_strace_create(const struct kymo_strace_request *request, const struct kymo_strace_user *user,
				      int fd, struct kymo_strace **ret);

/* NULL is allowed. */
void kymo_strace_destroy(struct kymo_strace *s);

struct kymo_strace_result kymo_strace_result(const struct kymo_strace *s);

/* Write the table of counts, if one is wanted, and all that is buffered. False: it was not written whole. */
bool kymo_strace_finish(struct kymo_strace *s);

/* Close the stream; its readers see its end. */
void kymo_strace_close(struct kymo_strace *s);

#endif
