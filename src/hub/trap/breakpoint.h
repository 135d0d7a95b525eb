/* Breakpoints of engines. */
#ifndef KYMO_HUB_TRAP_BREAKPOINT_H
#define KYMO_HUB_TRAP_BREAKPOINT_H

#include "kymo/engine.h"

struct task;

/* A thread has stopped for a SIGTRAP. True: it was a breakpoint's, and dealt with; it stands in a stop without a
 * signal, or has another status to be told. */
bool hub_breakpoint_stopped(struct kymo_hub *hub, struct task *task, int *group_ret);

/* Whether a signal that waits in a thread is of a breakpoint or a debug register, of one that is gone perhaps. */
bool hub_is_trap_of_ours(const struct task *task, const siginfo_t *info);

/*
 * Step over the breakpoint at which a thread that is going on stands. False: there is none, or it is done, and the
 * thread goes on as if nothing had been. True: what it has done instead is to be told, and it must not be touched
 * before. `wants_step`: a step is to be told.
 */
bool hub_step_over(struct kymo_hub *hub, struct task *task, bool wants_step);

/* It has executed the instruction at which it was told of. */
void hub_breakpoint_passed(struct task *task);

/* What an engine has put in goes with it. */
void hub_breakpoints_drop(struct kymo_hub *hub, struct kymo_engine *engine);

#endif
