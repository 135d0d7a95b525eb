/* A trace while it goes on. All of it runs on one thread, the hub's with the tracer, but what is said to be otherwise.
 * Private to the room. */
#ifndef KYMO_STRACE_STATE_H
#define KYMO_STRACE_STATE_H

#include <stdatomic.h>
#include <time.h>

#include "kymo/engine.h"
#include "strace/delays.h"
#include "strace/sink.h"
#include "strace/strace.h"
#include "syscall/call.h"
#include "syscall/inject.h"
#include "syscall/line.h"

struct kymo_inner;
struct kymo_stacks;
struct strace_counts;

/* Where lines go. */
struct strace_stream {
	FILE *file;
	int fd;                  /* of `file` */
	bool waits;              /* writing to it may wait */
	_Atomic int write_error; /* an errno: nothing more can be written, so there is no more to be seen */
	_Atomic bool is_stuck;   /* its reader does not take the lines, and is waited for no longer */
	bool is_incomplete;      /* something was not shown */
};

/* Of the tracer, in this order. Threads that are let go of while the first ones are attached may be attached by another
 * hub; after the end they have nothing to say any more. tracer.c has the table. */
enum strace_stage { STRACE_ATTACHING, STRACE_TRACING, STRACE_OVER };

/* The tracer's: unused where the kernel's programs see the calls, but for the pipe. */
struct strace_tracing {
	_Atomic enum strace_stage stage;
	struct kymo_hub *hub;       /* others may be connected to it still when this work is over */
	struct kymo_inner *inner;   /* for tracers inside of a tree that is followed, or NULL */
	bool is_command;            /* launched */
	int done[2];                /* a pipe that says that there is none left, or that a signal came */
	_Atomic int n_cut;          /* threads that were let go of while they lived */
	int cut;                    /* why, where that was not what the user asked for: kymo_hub_failure() */
	struct kymo_stacks *stacks; /* -k, or NULL */
	struct strace_delays delays;
};

struct kymo_strace {
	const struct kymo_strace_request *request;
	const struct kymo_strace_user *user;
	const struct strace_sink *sink; /* NULL: the table alone */
	struct strace_counts *table;
	struct strace_stream stream;
	struct strace_tracing tracing;

	_Atomic int n_threads; /* that are known */
	bool had_several;      /* threads at once: in a file all lines have their numbers from then on */
	bool flushes_later;    /* the source writes out what was shown, from time to time */
	struct timespec now;   /* of what is shown, since 1970; 0: the clock says */
	struct timespec last;  /* of the line before; 0: there is none */
	pid_t running;         /* --for is over, and this command runs on; or 0 */

	struct strace_thread *open; /* whose line is not at its end; not with -ff */
};

struct strace_thread {
	struct kymo_strace *owner;
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
	char *stack;           /* of the call or signal, as it is shown after it; NULL: not wanted */
	uint64_t entered_ns;
	bool is_in_call;
	bool is_shown;       /* the call is in the set, and touches the path */
	bool is_before_exec; /* a command whose program is yet to be executed */
	bool has_ended;
	bool is_i386;                                   /* its last call was one of 32 bits */
	const struct kymo_syscall_injection *injection; /* into the call that it is in; or NULL */
	uint32_t *made;                                 /* how many calls of each number, where there are injections */
};

#endif
