/*
 * What `kymo syscalls` is made of: two ways to see calls - a tracer, which has an engine for each thread, and the
 * kernel's tracepoints - and three to show them. All of it runs on one thread, the hub's with the tracer, but what is
 * said to be called before or after.
 */
#ifndef KYMO_CLI_SYSCALLS_H
#define KYMO_CLI_SYSCALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"
#include "base/vec.h"
#include "cli/worker.h"
#include "kymo/engine.h"
#include "syscall/call.h"
#include "syscall/inject.h"
#include "syscall/line.h"
#include "syscall/sets.h"

struct cli_syscall_counts;
struct cli_syscall_injections;
struct kymo_identity;
struct kymo_stacks;

enum cli_clock { CLI_NO_TIME, CLI_TIME_OF_DAY, CLI_UNIX_TIME };

enum { CLI_QUIET_EXIT = 2, CLI_QUIET_MODE = 4, CLI_QUIET_EXEC = 8 };
enum { CLI_FD_PATH = 1, CLI_FD_SOCKET = 2, CLI_FD_DEVICE = 4, CLI_FD_PIDFD = 8, CLI_FD_ALL = 15 };
enum { CLI_PID_COMM = 1, CLI_PID_NAMESPACE = 2 };
enum { CLI_SYSCALLS_BUFFER_SIZE = 16 << 20 };
enum { CLI_SYSCALL_COLUMNS_MAX = 9 };

/* All zero: strace's own. */
struct cli_syscall_columns {
	unsigned char shown[CLI_SYSCALL_COLUMNS_MAX], n, order;
};

/* What the user wants. Nothing changes it once the trace has begun. */
struct cli_syscall_request {
	struct kymo_syscall_set set, whole, raw; /* that are shown; with whole structures; with numbers for arguments */
	bool follows, json, stack_traces;
	bool counts, shows_lines;           /* -c has a table and no lines, -C both */
	struct cli_syscall_columns columns; /* of the table */
	bool hides_good, hides_failed,
		hides_unfinished; /* calls with such results; then lines are shown when the result is known */
	uint64_t hidden_signals;  /* bit 0 is signal 1 */
	unsigned int quiet;       /* CLI_QUIET_… */
	unsigned int fds, pids;   /* what is shown of descriptors and of ids: CLI_FD_…, CLI_PID_… */
	bool durations, relative_times, numbers, addresses;
	enum cli_clock clock;
	unsigned int clock_digits, relative_digits, duration_digits; /* of a second */
	KYMO_VEC(const char *) paths;                                /* -P, and where their links lead */
	size_t string_size;
	struct kymo_syscall_style style;
	bool leaves_on_exec;                       /* -b execve */
	struct cli_syscall_injections *injections; /* or NULL */
	const struct kymo_identity *identity;      /* -u: of the command; or NULL: as kymo */
	uint64_t buffer_size;                      /* of the kernel's way, bytes */
	uint64_t for_ns;                           /* then tracing ends; 0: never */
	bool shows_names;                          /* of threads, beside their ids */
	bool picks; /* a filter lets calls pass that are not shown; the command ends with kymo */
};

/* Where lines go. */
struct cli_syscall_output {
	FILE *file;
	const char *path;        /* -o; or NULL */
	bool appends;            /* to the file */
	bool is_file;            /* lines do not go to stderr */
	bool is_separate;        /* -ff: each thread has a file of its own */
	pid_t filter;            /* -o '|COMMAND': the shell that runs it; or 0 */
	int fd;                  /* of `file` */
	bool waits;              /* writing to it may wait */
	_Atomic int write_error; /* an errno: nothing more can be written, so there is no more to be seen */
	_Atomic bool is_stuck;   /* its reader does not take the lines, and is waited for no longer */
	bool has_failed;         /* something was not shown, and the user was told */
	struct cli_worker worker;
};

/* The tracer's: unused where the kernel's programs see the calls. */
struct cli_syscall_tracing {
	_Atomic bool is_over;     /* threads that are let go of have nothing to say any more */
	struct kymo_hub *hub;     /* others may be connected to it still when this work is over */
	struct kymo_inner *inner; /* for tracers inside of a tree that is followed, or NULL */
	bool is_command;          /* launched */
	_Atomic bool is_attaching;
	int done[2];                /* a pipe that says that there is none left, or that a signal came */
	_Atomic int n_cut;          /* threads that were let go of while they lived */
	int cut;                    /* why, where that was not what the user asked for: kymo_hub_failure() */
	struct kymo_stacks *stacks; /* -k, or NULL */
};

struct cli_syscalls {
	struct cli_syscall_request request;
	struct cli_syscall_output output;
	struct cli_syscall_tracing tracing;

	_Atomic int n_threads; /* that are known */
	bool had_several;      /* threads at once: in a file all lines have their numbers from then on */
	bool flushes_later;    /* who sees calls writes out what was shown, from time to time */
	struct timespec now;   /* of what is shown, since 1970; 0: the clock says */
	struct timespec last;  /* of the line before; 0: there is none */
	pid_t running;         /* --for is over, and this command runs on; or 0 */

	struct cli_syscall_thread *open; /* whose line is not at its end; not with -ff */
	struct cli_syscall_counts *table;
};

struct cli_syscall_thread {
	struct cli_syscalls *owner;
	struct kymo_engine *engine; /* during a callback */
	pid_t tid, pid;
	char name[16]; /* safe to print; "" where it is not shown, or not known */
	char comm[16]; /* -Y: its name at the last line */
	size_t n_comm;
	FILE *out;          /* -ff: its own; or NULL */
	bool has_open_line; /* there */
	uint64_t address;   /* of the instruction that it stands behind; 0: unknown */
	struct kymo_syscall_target target;
	struct kymo_syscall_call call;
	uint64_t number;       /* of the call as the program has it */
	struct kymo_line text; /* of the line that is being made */
	char *stack;           /* of the call or signal, as it is shown behind it; NULL: not wanted */
	uint64_t entered_ns;
	bool is_in_call;
	bool is_shown;    /* the call is in the set, and touches the path */
	bool is_starting; /* a command that has not begun */
	bool has_ended;
	bool is_i386;                                   /* its last call was one of 32 bits */
	const struct kymo_syscall_injection *injection; /* into the call that it is in; or NULL */
	uint32_t *made;                                 /* how many calls of each number, where there are injections */
};

#endif
