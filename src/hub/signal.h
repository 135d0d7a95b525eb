/* Signals of a thread: delivered, and sent by engines. */
#ifndef KYMO_HUB_SIGNAL_H
#define KYMO_HUB_SIGNAL_H

#include "kymo/engine.h"

struct task;

/* A row of the table in local.c; include/kymo/engine.h has the contract. */
int hub_local_inject(struct kymo_engine *engine, const siginfo_t *info);

/* A thread has stopped before a signal is delivered: ask engines, and set task->signal. Lock held. */
void hub_signal_stopped(struct kymo_hub *hub, struct task *task, int signal);

/* Of a thread that has stopped, and a signal that it stands before has been dealt with: those that were sent and don't
 * arrive any more. Lock held. */
void hub_forget_lost_signals(struct kymo_hub *hub, struct task *task);

#endif
