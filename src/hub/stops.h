/* What wait statuses mean. docs/internals/engines.md has the table. */
#ifndef KYMO_HUB_STOPS_H
#define KYMO_HUB_STOPS_H

#include "kymo/engine.h"

struct task;

/* Thread `tid` has changed state so. On the hub's thread, lock held; releases it for callbacks. */
void hub_dispatch(struct kymo_hub *hub, pid_t tid, int status);

/*
 * Whether a step is done that its thread, which stands at a PTRACE_EVENT_STOP, has not told yet. Then its own stop has
 * been made to come next, without an instruction in between. That ends a group stop, into which the thread has to be
 * sent again.
 */
bool hub_waits_for_step(struct task *task);

/*
 * A stopped thread's call may have failed because of us, as it would not have without a tracer: by the stop itself
 * (`signal` 0), or for a signal that its process ignores, which wakes up only who has a tracer. It is made again,
 * unless an engine wants it to end.
 */
void hub_undo_interruption(struct task *task, int signal);

/* Whether a SIGTRAP is of a step: behind an instruction, a system call; at the beginning of a signal handler. */
bool hub_is_of_step(const siginfo_t *info);

/* First stops that nobody has claimed for long, if `is_idle`: else what has yet to be dispatched may be their makers'
 * events. And holds in exit events that have lasted too long. */
void hub_look_at_clock(struct kymo_hub *hub, bool is_idle);

/* Whether that is to be called every few milliseconds. */
bool hub_needs_clock(const struct kymo_hub *hub);

#endif
