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
#include "cli/apart.h"
#include "kymo/engine.h"
#include "syscall/syscall.h"

struct cli_syscall_counts;
struct cli_syscall_injections;
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

struct cli_syscalls {
	/* What the user wants. */
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
	bool leaves_on_exec; /* -b execve */
	FILE *out;
	const char *file;        /* -o; or NULL */
	bool appends;            /* to the file */
	bool is_file;            /* lines do not go to stderr */
	bool is_apart;           /* -ff: each thread has a file of its own */
	pid_t filter;            /* -o '|COMMAND': the shell that runs it; or 0 */
	int fd;                  /* of `out` */
	bool waits;              /* writing to it may wait */
	_Atomic int write_error; /* an errno: nothing more can be written, so there is no more to be seen */
	struct cli_syscall_injections *injections; /* or NULL */
	uint64_t buffer_size;                      /* of the kernel's way, bytes */
	uint64_t for_ns;                           /* then tracing ends; 0: never */
	bool shows_names;                          /* of threads, beside their ids */
	bool picks; /* a filter lets calls pass that are not shown; the command ends with kymo */

	/* Of both ways. */
	_Atomic int n_threads; /* that are known */
	bool had_several;      /* threads at once: in a file all lines have their numbers from then on */
	bool flushes_later;    /* who sees calls writes out what was shown, from time to time */
	struct timespec now;   /* of what is shown, since 1970; 0: the clock says */
	struct timespec last;  /* of the line before; 0: there is none */
	pid_t running;         /* --for is over, and this command runs on; or 0 */

	/* The tracer's. */
	struct cli_apart apart;
	_Atomic bool is_stuck;    /* who is to take the lines does not, and is waited for no longer */
	_Atomic bool is_over;     /* threads that are let go of have nothing to say any more */
	struct kymo_hub *hub;     /* others may be connected to it still when this work is over */
	struct kymo_inner *inner; /* for tracers inside of a tree that is followed, or NULL */
	bool is_command;          /* launched */
	_Atomic bool is_attaching;
	int done[2];                /* a pipe that says that there is none left, or that a signal came */
	_Atomic int n_cut;          /* threads that were let go of while they lived */
	int cut;                    /* why, where that was not the user's wish: kymo_hub_failure() */
	struct kymo_stacks *stacks; /* -k, or NULL */
	bool has_failed;            /* something was not shown, and the user was told */

	/* The views'. */
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

/* ---- engines (syscall_engine.c) -------------------------------------------------------------- */

/* Have an engine on a thread of process `pid`. On the hub's thread. A negative errno of kymo_engine_attach(); -EEXIST:
 * it has one already. */
int cli_syscall_follow(struct cli_syscalls *s, pid_t tid, pid_t pid);

/* ---- the tracer (syscall_tracer.c) ----------------------------------------------------------- */

/* Trace `command` (NULL-terminated; or NULL) or the `n` processes `pids`, until all threads are gone or the user
 * interrupts. `status_ret`: the command's, as waitpid() gives it. GONE, PERMISSION, BUSY, NOT_FOUND, FAILED. */
struct kymo_error *cli_syscalls_run(struct cli_syscalls *s, char **command, const pid_t *pids, size_t n,
				    int *status_ret);

/* Wait for the command that runs on after --for, or until a signal comes or the user is gone. As waitpid() gives it;
 * the number of the signal. */
int cli_syscalls_wait(struct cli_syscalls *s);

/* When all is said: let the user's kymo end with `status`, and serve others until they have gone. Returns at once where
 * there are none. */
void cli_syscalls_outlive(struct cli_syscalls *s, int status);

/* ---- what stands before lines (syscall_prefix.c) --------------------------------------------- */

/* The thread, the time, the number and the address, as far as they are wanted. The line is empty before. */
void cli_syscall_put_prefix(struct cli_syscall_thread *thread);

/* A time of so many digits behind the second. */
void cli_syscall_put_seconds(struct kymo_line *line, uint64_t ns, unsigned int digits);

/* ---- descriptors (syscall_fds.c) ------------------------------------------------------------- */

/* put_fd of a target whose context is a thread: what -yy and --decode-fds want. */
bool cli_syscall_put_fd(void *context, int fd, const char *link, size_t n, struct kymo_line *text);

/* ---- where lines go (syscall_output.c) ------------------------------------------------------- */

/* `path`: NULL: stderr; with a '|' or '!' before it: a command for the shell, which reads the lines. A negative errno.
 */
int cli_syscalls_open_output(struct cli_syscalls *s, const char *path, bool appends);

/* All was written; waits for the command. */
void cli_syscalls_close_output(struct cli_syscalls *s);

/* -ff: a file for the thread. A negative errno. */
int cli_syscalls_open_own_output(struct cli_syscall_thread *thread);

/* ---- injection (syscall_inject.c) ------------------------------------------------------------ */

/* Add one to those of `injections`, which are created with the first. USAGE, NO_MEMORY. */
struct kymo_error *cli_syscall_injections_add(struct cli_syscall_injections **injections, const char *text);

/* After the hub's end. */
void cli_syscall_injections_destroy(struct cli_syscall_injections *injections);

/* Whether some are into calls of that number. */
bool cli_syscall_injections_have(const struct cli_syscall_injections *injections, uint64_t number);

/* What the thread's engine answers at the entry of a call and at its exit. The report has the injected result then. */
unsigned int cli_syscall_inject_enter(struct cli_syscall_thread *thread);
unsigned int cli_syscall_inject_leave(struct cli_syscall_thread *thread, const struct kymo_syscall_report *report);

/* The thread has died, and is not delayed any more. */
void cli_syscall_inject_end(const struct cli_syscall_thread *thread);

/* " (INJECTED)", " (DELAYED)", both or "". */
const char *cli_syscall_injected(const struct cli_syscall_thread *thread);

/* Let threads go on whose delay is over; UINT64_MAX: all. On the main thread. When the next one's is, or UINT64_MAX. */
uint64_t cli_syscall_injections_end_delays(struct cli_syscall_injections *injections, uint64_t now);

/* ---- stacks (syscall_stack.c): nothing without -k -------------------------------------------- */

/* Take the stack of a thread that stands, in a call that it has begun or at a signal. */
void cli_syscall_stack_take(struct cli_syscall_thread *thread, bool is_in_call);

/* Its call has returned, which may have changed what is mapped. */
void cli_syscall_stack_saw(struct cli_syscall_thread *thread);

/* Its process is another program now, or gone. */
void cli_syscall_stack_forget(const struct cli_syscall_thread *thread);

/* ---- the kernel's tracepoints (syscall_kernel.c) --------------------------------------------- */

/* The same; with neither a command nor a process, the calls of all but this one. */
struct kymo_error *cli_syscalls_run_in_kernel(struct cli_syscalls *s, char **command, pid_t pid, int *status_ret);

/* ---- what is seen (syscall_events.c) --------------------------------------------------------- */

/* A call is made. Then is_shown is to be set, what is shown is to be shown, and entered_ns to be set. */
void cli_syscall_enter(struct cli_syscall_thread *thread, uint64_t number, const uint64_t args[6],
		       uint64_t stack_pointer);
void cli_syscall_set_mode(struct cli_syscall_thread *thread, bool is_i386); /* of the call that was entered */
void cli_syscall_show_entry(struct cli_syscall_thread *thread);
void cli_syscall_leave(struct cli_syscall_thread *thread, int64_t result, uint64_t now_ns);
void cli_syscall_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_end_call(struct cli_syscall_thread *thread); /* that does not return, as its thread has died */
void cli_syscall_end(struct cli_syscall_thread *thread, int status);

/* ---- lines, as strace writes them (syscall_lines.c) ------------------------------------------ */

void cli_syscall_line_enter(struct cli_syscall_thread *thread);
void cli_syscall_line_mode(struct cli_syscall_thread *thread); /* its calls have other numbers from here on */
void cli_syscall_line_leave(struct cli_syscall_thread *thread, uint64_t duration_ns);
void cli_syscall_line_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_line_stop(struct cli_syscall_thread *thread, int signal);
void cli_syscall_line_end_call(struct cli_syscall_thread *thread); /* that does not return */
void cli_syscall_line_superseded(struct cli_syscall_thread *thread, pid_t by);
void cli_syscall_line_end(struct cli_syscall_thread *thread, int status);
void cli_syscall_line_lost(struct cli_syscalls *s, uint64_t n);
void cli_syscall_line_let_go(struct cli_syscalls *s);               /* the open line stays without an end */
void cli_syscall_line_let_go_of(struct cli_syscall_thread *thread); /* the same, where it is this thread's */

/* ---- JSON, an object a line (syscall_json.c) ------------------------------------------------- */

void cli_syscall_json_enter(struct cli_syscall_thread *thread);
void cli_syscall_json_leave(struct cli_syscall_thread *thread, uint64_t duration_ns);
void cli_syscall_json_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_json_stop(struct cli_syscall_thread *thread, int signal);
void cli_syscall_json_end_call(struct cli_syscall_thread *thread); /* that does not return */
void cli_syscall_json_superseded(struct cli_syscall_thread *thread, pid_t by);
void cli_syscall_json_end(struct cli_syscall_thread *thread, int status);
void cli_syscall_json_lost(struct cli_syscalls *s, uint64_t n);

/* ---- a table of counts (syscall_counts.c) ---------------------------------------------------- */

/* What -S and -U take. False: that is no such. */
bool cli_syscall_counts_sort(struct cli_syscall_columns *columns, const char *text);
bool cli_syscall_counts_choose(struct cli_syscall_columns *columns, const char *text);

/* NULL where memory is out. */
struct cli_syscall_counts *cli_syscall_counts_create(void);
void cli_syscall_counts_destroy(struct cli_syscall_counts *counts);
void cli_syscall_counts_add(struct cli_syscall_counts *counts, const struct kymo_syscall_call *call,
			    uint64_t duration_ns);
void cli_syscall_counts_print(const struct cli_syscall_counts *counts, const struct cli_syscall_columns *columns,
			      bool json, FILE *out);

#endif
