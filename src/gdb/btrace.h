/* Threads whose branches a client traces: they are stepped in place of running. On the hub's thread. */
#ifndef KYMO_GDB_BTRACE_H
#define KYMO_GDB_BTRACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "branch/walk.h"
#include "gdb/blocks.h"
#include "kymo/engine.h"

struct gdb_thread;

struct gdb_btrace {
	bool is_on;     /* a client traces it; else it may have done so */
	bool is_walked; /* the stub has it step, or did so and a step may be left: steps do not show in the program */
	bool owes_step; /* a step was asked for, and it has not been seen to move since */
	bool was_told;  /* it stands at a breakpoint of which it has been told */
	size_t size;    /* bytes, as the client is told */
	struct kymo_walk now;
	bool is_at_call_end;  /* that stop was the end of a system call: a step's end may be told of the same */
	bool expects_handler; /* a signal that has a handler was delivered since */
	struct gdb_blocks blocks;
};

/* -EALREADY, -ENOMEM. The thread need not be stopped. */
int gdb_btrace_begin(struct gdb_thread *thread, size_t size);

/* It runs freely from now on, or from the end of its step. False: it was not traced. */
bool gdb_btrace_end(struct gdb_thread *thread);
void gdb_btrace_destroy(struct gdb_btrace *btrace); /* NULL is allowed */

bool gdb_is_traced(const struct gdb_thread *thread);

/* The thread stands where it begins to make steps for tracepoints. False: no memory. */
bool gdb_btrace_walk(struct gdb_thread *thread);

/* Whether its steps are hidden from the program: it makes some, or the hub may still owe it one. */
bool gdb_btrace_is_walked(const struct gdb_thread *thread);

/* It is about to make a step, for the client or for the stub. What an engine returns for that. */
enum kymo_action gdb_btrace_step(struct gdb_thread *thread);

/* It has been told of the breakpoint at which it stands: what it does next is the instruction there. */
void gdb_btrace_note_told(struct gdb_thread *thread, uint64_t address);

/* … and has that hit again when it goes on. */
void gdb_btrace_forget_hit(struct gdb_thread *thread);

/* Whether a recording has its rings in a process. A thread writes into them by a restartable sequence, which it never
 * gets through by steps. */
bool gdb_has_recording(pid_t pid);

/* Whether an instruction that pushes flags may be in its step: its end has to be seen. */
bool gdb_btrace_is_pushing(const struct gdb_thread *thread);

/* A stop of the thread, before `event` (0: a step's end, or what an engine has asked for) is told. */
void gdb_btrace_see(struct gdb_thread *thread, unsigned int event);

/* The client may have moved a thread that is stopped. */
void gdb_btrace_look_again(struct gdb_thread *thread);

/* It gets this signal when it goes on. */
void gdb_btrace_expect_signal(struct gdb_thread *thread, int signal);

/* It executes another program. */
void gdb_btrace_forget(struct gdb_thread *thread);

/* What a thread does that goes on: it steps if it is traced, or makes steps for tracepoints. Instructions that are not
 * left to a step are executed here. A thread that runs freely from now on first executes what shows steps. */
enum kymo_action gdb_btrace_action(struct gdb_thread *thread);

/* Execute one such instruction in place of a step, where the thread stands. False: it is to step. */
bool gdb_btrace_pop(struct gdb_thread *thread);

#endif
