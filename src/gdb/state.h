/*
 * What a stub knows. All of it belongs to the hub's thread: callbacks and what kymo_hub_run() executes. What the main
 * thread has for itself is in serve.c.
 */
#ifndef KYMO_GDB_STATE_H
#define KYMO_GDB_STATE_H

#include <limits.h>

#include "arch/registers.h"
#include "base/vec.h"
#include "gdb/btrace.h"
#include "gdb/serve.h"
#include "gdb/text.h"
#include "gdb/trace.h"
#include "gdb/words.h"
#include "kymo/engine.h"

enum gdb_event_kind {
	GDB_EVENT_NONE,
	GDB_EVENT_SIGNAL,
	GDB_EVENT_BREAK,
	GDB_EVENT_WATCH,
	GDB_EVENT_STEP,
	GDB_EVENT_FORK,
	GDB_EVENT_VFORK,
	GDB_EVENT_VFORK_DONE,
	GDB_EVENT_EXEC,
	GDB_EVENT_ENTRY,
	GDB_EVENT_RETURN,
	GDB_EVENT_CREATED,
	GDB_EVENT_INTERRUPT, /* ^C, and what a client finds when it comes */
};

struct gdb_event {
	enum gdb_event_kind kind;
	int signal;       /* the kernel's number */
	uint64_t address; /* of the breakpoint, of what is watched */
	int watch;        /* enum kymo_watch */
	uint64_t number;  /* of the system call */
	pid_t child;
};

/* What the client has inserted. `type` is that of Z packets. */
struct gdb_break {
	int type;
	uint64_t address;
	size_t size;
};

/* Of a breakpoint: gdb's agent expression. */
struct gdb_condition {
	int type;
	bool is_command; /* it prints, and has no value */
	uint64_t address;
	uint8_t *code;
	size_t size;
	struct kymo_form *form;  /* of the expression; or NULL: it has none */
	struct gdb_print *print; /* of a command that a pad can have; or NULL */
};

/* What was to be in a pad. */
struct gdb_pad {
	uint64_t address;
	uint8_t *code;       /* expressions: the condition, and then what is printed */
	size_t size, n_code; /* bytes of the condition, and of both; 0: there is none */
	bool is_in;          /* else it was refused */
};

/* What a process has in pads: pads.c. */
struct gdb_pads {
	KYMO_VEC(struct gdb_pad) items;
	unsigned int epoch; /* of the program: each exec ends one */
	bool is_refused;    /* the process takes none, and is not asked again */
};

enum { GDB_PRINTED_MAX = 1 << 20 }; /* bytes that wait for the main thread */

/* By commands of breakpoints, and not shown yet. */
struct gdb_printed {
	struct gdb_text text;
	uint64_t n_lost; /* hits whose text had no place there */
};

enum { GDB_SYMBOLS = 14 };

struct gdb_process {
	pid_t pid;
	bool is_launched;        /* by the stub, or forked from one that was */
	bool is_child;           /* of this process: the hub is to be told that its end is known */
	unsigned int execs_left; /* of a launched one, until it is the program */
	bool has_ended;
	bool has_first_ended; /* with `status`, and sharers of its memory go on */
	int status;
	KYMO_VEC(struct gdb_break) breaks;
	KYMO_VEC(struct gdb_condition) conditions; /* of these; several of one: any may be true */
	struct gdb_pads pads;
	bool is_narrow; /* it executes a 32-bit program, in which nothing is inserted */
	bool catches_calls, catches_all_calls;
	KYMO_VEC(uint64_t) calls;
	uint64_t symbols[GDB_SYMBOLS]; /* of its C library, as the client has told them: tls.c */
	size_t n_symbols;
};

struct gdb_watch {
	unsigned int slot;
	size_t index; /* in its kind */
	struct gdb_break what;
};

/* How far the client knows of a thread's `event`. The table of what may follow what is in thread.c. */
enum gdb_telling {
	GDB_NOTHING_TO_TELL,
	GDB_PENDING, /* it has yet to be told */
	GDB_SENT,    /* non-stop: it was told, and the client has not acknowledged it yet (vStopped) */
	GDB_TOLD,
};

struct gdb_thread {
	struct kymo_gdb *gdb;
	struct kymo_engine *engine; /* a reference */
	struct gdb_process *process;
	pid_t tid;
	bool is_sharer;  /* a process to the kernel, which shares the memory of `process` */
	bool is_dead;    /* told by DEATH; its end is still to come */
	bool is_stopped; /* is stopped, and is known to */
	bool is_asked;   /* to stop */
	bool is_let_go;  /* all-stop: the client has let it go on last; if not, its event waits until the client does */
	bool is_settling; /* stops when its exec has returned */
	bool is_owed;     /* non-stop: the client has asked for the stop, and is told of it */
	int owed_signal;  /* … with this signal: 0, or SIGINT for ^C */
	uint64_t order;   /* of `event`, among those of all threads */
	bool is_stepping;
	bool is_vforking; /* waits in the kernel for its child, where nothing but SIGKILL stops it */
	bool is_stuck;    /* sleeps in the kernel, as the one above: a file system that does not answer */
	bool is_untold;   /* of a child whose fork has yet to be told: the client knows of no such process */
	bool needs_watches;
	struct gdb_event event;
	enum gdb_telling telling;
	siginfo_t info;                  /* of the last signal, or what stands for one */
	bool is_at_signal;               /* stands before a signal, which it gets or not */
	siginfo_t kept;                  /* a signal that the client wants it to have when it goes on; or si_signo 0 */
	uint64_t range_start, range_end; /* of a step; 0, 0: one instruction */
	uint64_t step_pc;                /* where it began */
	uint64_t handle;                 /* its thread pointer, as last seen; or 0 */
	uint64_t moved_from;             /* where it stopped, if the client has changed that since; or 0 */
	bool has_set_call;               /* the client has written orig_rax since */
	bool is_step_done;               /* without that the thread ran: it is told when all are resumed */
	bool owes_return, is_return_due; /* of a vfork, whose end is told first; due: when all are resumed */
	uint64_t returned;               /* … by this number */
	struct gdb_btrace *btrace;       /* NULL: its branches were never traced */
	KYMO_VEC(struct gdb_watch) watches;
	KYMO_VEC(struct gdb_trace_step) trace_steps; /* it steps, for tracepoints that it has hit */
	uint64_t trace_pc;                           /* where its last step of these has begun */
	bool is_trace_at_call_end;                   /* … which was the end of a system call: it may be told again */
};

struct gdb_pad_set;
struct gdb_prints;

enum gdb_state { GDB_STOPPED, GDB_RUNNING, GDB_STOPPING };

/* What changes that: rows of the table in stop.c. */
enum gdb_change {
	GDB_RESUMED,
	GDB_NONE_RESUMED, /* … after all */
	GDB_TELLS_FIRST,  /* an event is pending, which is told in place of resuming */
	GDB_ASKED_ALL,    /* to stop */
	GDB_ALL_STAND,    /* and one is told, or a session begins */
	GDB_STARTS,       /* a program: it comes to its first instruction */
	GDB_STARTED,      /* … or has ended */
	GDB_KILLED,
	GDB_BEGAN_NON_STOP,
	GDB_LETS_RUN, /* without a client */
	GDB_LOST_CLIENT,
};

struct gdb_end {
	pid_t pid, tid; /* tid 0: of the process */
	int status;
	uint64_t order; /* as a thread's */
	bool is_sent;
};

struct kymo_gdb {
	struct kymo_gdb_options options;
	struct kymo_hub *hub;                    /* its own, or a connection to that of another process */
	bool has_joined;                         /* it is a connection */
	int wake;                                /* an eventfd: the main thread has something to collect */
	KYMO_VEC(struct gdb_pad_set *) pad_sets; /* the main thread's: of each process that has pads */
	int client, ends_waits; /* the main thread's: what the client writes to; can be read when the stub is to end */
	enum gdb_state state;   /* of all-stop */
	bool is_non_stop;       /* each thread is stopped and resumed for itself; the state is RUNNING */
	bool was_asked;         /* non-stop: by `?` */
	bool may_notify;        /* non-stop: the client looks at threads since `?`, or resumes them */
	bool is_in_sequence;    /* non-stop: a stop was told, and vStopped is to come */
	pid_t sent_child;       /* non-stop: of a fork that was told, and is not acknowledged yet; or 0 */
	bool is_unresumed;      /* non-stop: the last thread that ran has ended, which is to be told */
	uint64_t last_order;
	unsigned int n_ticks; /* for how long threads have been waited for */
	KYMO_VEC(struct gdb_process *) processes;
	KYMO_VEC(struct gdb_thread *) threads;
	KYMO_VEC(struct gdb_end) ends; /* to be told */
	KYMO_VEC(pid_t) children;      /* that have ended, and of which the hub is to be told */
	bool is_client;
	bool is_interrupted; /* ^C, which has yet to be told; in non-stop, which has yet to come to a thread */

	/* What the client has said. */
	bool has_multiprocess, has_forks, has_vforks, has_execs, has_no_resumed, has_swbreak, has_hwbreak;
	bool wants_threads; /* QThreadEvents */
	bool is_extended, is_over, has_no_acks;
	bool lets_randomize;
	enum kymo_gdb_pads pads;
	uint64_t passed;      /* bit N - 1: signal N is for the program alone */
	uint64_t for_program; /* … may be delivered, of QProgramSignals */
	bool knows_for_program;
	struct gdb_id general, running; /* H */
	size_t next_thread;             /* of qsThreadInfo */
	char **environment;             /* of what is launched; NULL: this process' own */
	char folder[PATH_MAX];          /* or "" */
	char **last_argv;               /* of the program that was launched last */
	int files_root;                 /* vFile:setfs: the root of another process; -1: our own */
	int files[64];                  /* descriptors, -1: free */

	struct kymo_register *registers; /* as they are described to the client; NULL: not asked yet */
	size_t n_registers;
	struct gdb_printed printed;
	KYMO_VEC(struct gdb_prints *) prints; /* of pads that print: those of the sets above */
	struct gdb_text console;              /* a packet that is sent before the reply: text for the user; or empty */
	size_t btrace_size;                   /* bytes, for threads whose trace begins; 0: not said */
	struct gdb_text document;             /* qXfer: what is being read, and of which object */
	char document_name[64];
	struct gdb_tracing tracing;
	bool has_left_run; /* the last client has left a trace run behind, which may have ended since */
};

/* Free what the struct has, but not itself, its hub and its eventfd. Its threads have been forgotten before. */
void gdb_free_state(struct kymo_gdb *gdb);

#endif
