/*
 * What `kymo syscalls` is made of: two ways to see calls - a tracer, which has an engine for each thread, and the kernel's tracepoints -
 * and three to show them. All of it runs on one thread, the hub's with the tracer, but what is said to be called before or after.
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
#include "cli/apart.h"
#include "kymo/engine.h"
#include "syscall/syscall.h"

struct cli_syscall_counts;
struct cli_syscall_injections;
struct kymo_stacks;

struct cli_syscalls {
	/* What the user wants. */
	struct kymo_syscall_set set;
	bool follows, counts, durations, times, fd_paths, only_good, only_failed, json, stack_traces;
	const char *path, *real_path; /* -P, and where its links lead; or NULL */
	size_t string_size;
	FILE *out;
	bool is_file; /* -o */
	int fd; /* of `out` */
	bool waits; /* writing to it may wait */
	_Atomic int write_error; /* an errno: nothing more can be written, so there is no more to be seen */
	struct cli_syscall_injections *injections; /* or NULL */
	uint64_t buffer_size; /* of the kernel's way, bytes */
	bool picks; /* a filter lets calls pass that are not shown; the command ends with kymo */

	/* Of both ways. */
	_Atomic int n_threads; /* that are known */
	bool had_several; /* threads at once: in a file all lines have their numbers from then on */
	bool flushes_later; /* who sees calls writes out what was shown, from time to time */
	time_t seconds; /* of what is shown, since 1970; 0: now */

	/* The tracer's. */
	struct cli_apart apart;
	_Atomic bool is_stuck; /* who is to take the lines does not, and is waited for no longer */
	_Atomic bool is_over; /* threads that are let go of have nothing to say any more */
	struct kymo_hub *hub; /* others may be connected to it still when this work is over */
	struct kymo_inner *inner; /* for tracers inside of a tree that is followed, or NULL */
	bool is_command; /* launched */
	_Atomic bool is_attaching;
	int done[2]; /* a pipe that says that there is none left, or that a signal came */
	_Atomic int n_cut; /* threads that were let go of while they lived */
	int cut; /* why, where that was not the user's wish: kymo_hub_failure() */
	struct kymo_stacks *stacks; /* -k, or NULL */
	bool has_failed; /* something was not shown, and the user was told */

	/* The views'. */
	struct cli_syscall_thread *open; /* whose line is not at its end */
	struct cli_syscall_counts *table;
};

struct cli_syscall_thread {
	struct cli_syscalls *owner;
	struct kymo_engine *engine; /* during a callback */
	pid_t tid, pid;
	struct kymo_syscall_target target;
	struct kymo_syscall_call call;
	uint64_t number; /* of the call as the program has it */
	struct kymo_line text; /* of the line that is being made */
	char *stack; /* of the call or signal, as it is shown behind it; NULL: not wanted */
	uint64_t entered_ns;
	bool is_in_call;
	bool is_shown; /* the call is in the set, and touches the path */
	bool is_starting; /* a command that has not begun */
	bool has_ended;
	bool is_i386; /* its last call was one of 32 bits */
	const struct kymo_syscall_injection *injection; /* into the call that it is in; or NULL */
	uint32_t *made; /* how many calls of each number, where there are injections */
};

/* ---- the tracer (syscall_tracer.c) ------------------------------------------------------------------------------------ */

/* Trace `command` (NULL-terminated) or process `pid`, until all threads are gone or the user interrupts. `status_ret`: the command's, as
 * waitpid() gives it. GONE, PERMISSION, BUSY, NOT_FOUND, FAILED. */
struct kymo_error *cli_syscalls_run(struct cli_syscalls *s, char **command, pid_t pid, int *status_ret);

/* When all is said: let the user's kymo end with `status`, and serve others until they have gone. Returns at once where there are none. */
void cli_syscalls_outlive(struct cli_syscalls *s, int status);

enum cli_syscalls_wake {
	CLI_SYSCALLS_END,
	CLI_SYSCALLS_DELAYED, /* there is another delay to be ended */
};

/* Tell the main thread. From any thread, and from signal handlers. */
void cli_syscalls_wake(const struct cli_syscalls *s, enum cli_syscalls_wake why);

/* ---- where lines go (syscall_output.c) --------------------------------------------------------------------------------- */

/* `path`: NULL: stderr. A negative errno. */
int cli_syscalls_open_output(struct cli_syscalls *s, const char *path);

/* ---- injection (syscall_inject.c) --------------------------------------------------------------------------------------- */

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

/* ---- stacks (syscall_stack.c): nothing without -k ------------------------------------------------------------------------ */

/* Take the stack of a thread that stands, in a call that it has begun or at a signal. */
void cli_syscall_stack_take(struct cli_syscall_thread *thread, bool is_in_call);

/* Its call has returned, which may have changed what is mapped. */
void cli_syscall_stack_saw(struct cli_syscall_thread *thread);

/* Its process is another program now, or gone. */
void cli_syscall_stack_forget(const struct cli_syscall_thread *thread);

/* ---- the kernel's tracepoints (syscall_kernel.c) ------------------------------------------------------------------------ */

/* The same; with neither a command nor a process, the calls of all but this one. */
struct kymo_error *cli_syscalls_run_in_kernel(struct cli_syscalls *s, char **command, pid_t pid, int *status_ret);

/* ---- what is seen (syscall_events.c) ------------------------------------------------------------------------------------ */

/* A call is made. Then is_shown is to be set, what is shown is to be shown, and entered_ns to be set. */
void cli_syscall_enter(struct cli_syscall_thread *thread, uint64_t number, const uint64_t args[6], uint64_t stack_pointer);
void cli_syscall_set_mode(struct cli_syscall_thread *thread, bool is_i386); /* of the call that was entered */
void cli_syscall_show_entry(struct cli_syscall_thread *thread);
void cli_syscall_leave(struct cli_syscall_thread *thread, int64_t result, uint64_t now_ns);
void cli_syscall_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_end_call(struct cli_syscall_thread *thread); /* that does not return, as its thread has died */
void cli_syscall_end(struct cli_syscall_thread *thread, int status);

/* ---- lines, as strace writes them (syscall_lines.c) -------------------------------------------------------------------- */

void cli_syscall_line_enter(struct cli_syscall_thread *thread);
void cli_syscall_line_mode(struct cli_syscall_thread *thread); /* its calls have other numbers from here on */
void cli_syscall_line_leave(struct cli_syscall_thread *thread, uint64_t duration_ns);
void cli_syscall_line_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_line_stop(struct cli_syscall_thread *thread, int signal);
void cli_syscall_line_end_call(struct cli_syscall_thread *thread); /* that does not return */
void cli_syscall_line_superseded(struct cli_syscall_thread *thread, pid_t by);
void cli_syscall_line_end(struct cli_syscall_thread *thread, int status);
void cli_syscall_line_lost(struct cli_syscalls *s, uint64_t n);
void cli_syscall_line_let_go(struct cli_syscalls *s); /* the open line stays without an end */

/* ---- JSON, an object a line (syscall_json.c) ---------------------------------------------------------------------------- */

void cli_syscall_json_enter(struct cli_syscall_thread *thread);
void cli_syscall_json_leave(struct cli_syscall_thread *thread, uint64_t duration_ns);
void cli_syscall_json_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_json_stop(struct cli_syscall_thread *thread, int signal);
void cli_syscall_json_end_call(struct cli_syscall_thread *thread); /* that does not return */
void cli_syscall_json_superseded(struct cli_syscall_thread *thread, pid_t by);
void cli_syscall_json_end(struct cli_syscall_thread *thread, int status);
void cli_syscall_json_lost(struct cli_syscalls *s, uint64_t n);

/* ---- a table of counts (syscall_counts.c) ------------------------------------------------------------------------------- */

/* NULL where memory is out. */
struct cli_syscall_counts *cli_syscall_counts_create(void);
void cli_syscall_counts_destroy(struct cli_syscall_counts *counts);
void cli_syscall_counts_add(struct cli_syscall_counts *counts, const struct kymo_syscall_call *call, uint64_t duration_ns);
void cli_syscall_counts_print(const struct cli_syscall_counts *counts, bool json, FILE *out);

#endif
