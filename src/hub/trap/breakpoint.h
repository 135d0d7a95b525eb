/* Breakpoints of engines. */
#ifndef KYMO_HUB_TRAP_BREAKPOINT_H
#define KYMO_HUB_TRAP_BREAKPOINT_H

#include "kymo/engine.h"

struct task;

/* Rows of the table in local.c; include/kymo/engine.h has the contracts. */
int hub_local_insert_breakpoint(struct kymo_engine *engine, uint64_t address);
int hub_local_remove_breakpoint(struct kymo_engine *engine, uint64_t address);

/* A thread has stopped for a SIGTRAP. True: it was a breakpoint's, and dealt with; it stands in a stop without a
 * signal, or has another status to be told. What is to be told to owners of the breakpoint is in `ret`; its kind is 0
 * where there is nothing. */
bool hub_breakpoint_stopped(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *ret, int *group_ret);

/* Whether an engine is to be told that report. */
bool hub_breakpoint_is_owner(const struct kymo_engine *engine, const void *report);

/* Whether a SIGTRAP is of a step: after an instruction, a system call; at the beginning of a signal handler. */
bool hub_is_of_step(const siginfo_t *info);

/* Whether a signal that waits in a thread is of a breakpoint or a debug register, of one that is gone perhaps. */
bool hub_is_trap_of_ours(const struct task *task, const siginfo_t *info);

/*
 * Step over the breakpoint at which a thread that is going on stands. False: there is none, or it is done, and the
 * thread goes on as if nothing had been. True: what it has done instead is to be told, and it must not be touched
 * before. `wants_step`: a step is to be told.
 */
bool hub_step_over(struct kymo_hub *hub, struct task *task, bool wants_step);

/* It has stopped, and may have executed the instruction of the pad at which it was told of. Before it is brought out.
 */
void hub_breakpoint_look(struct task *task);

/* It has been brought out. With other registers it is at a pad once more, for another hit: in a signal handler. */
void hub_breakpoint_look_again(struct task *task);

/* It has executed the instruction at which it was told of. */
void hub_breakpoint_passed(struct task *task);

/* … by a step, which is done: if the hub has made it over the breakpoint, what it has pushed is made the program's. */
void hub_breakpoint_stepped(struct task *task);

#endif
