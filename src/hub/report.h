/* Calling engines. On the hub's thread, with the lock held, which is released for each callback. */
#ifndef KYMO_HUB_REPORT_H
#define KYMO_HUB_REPORT_H

#include "kymo/engine.h"

struct task;

/* Quiesce for those that were promised one. `with_steps`: a step is done. */
void hub_report_owed(struct kymo_hub *hub, struct task *task, bool with_steps);

void hub_report_syscall(struct kymo_hub *hub, struct task *task, unsigned int event);
void hub_report_clone(struct kymo_hub *hub, struct task *task, const struct kymo_clone_report *report);
/*
 * The process has executed a program. Each client has to prove again that it may trace it. The former memory is let go,
 * which is all that a client can reach until then.
 */
void hub_report_to_guests(struct kymo_hub *hub, struct task *task);
void hub_report_exec(struct kymo_hub *hub, struct task *task, pid_t former_tid);
void hub_report_exit(struct kymo_hub *hub, struct task *task, int status);
void hub_report_jctl(struct kymo_hub *hub, struct task *task, int signal);
void hub_report_signal(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report,
		       const struct kymo_engine *skip);

/* What is told to `is_for` alone, and is no signal. */
void hub_report_trap(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report,
		     bool (*is_for)(const struct kymo_engine *engine, const void *report));

/* DEATH; may be called once. */
void hub_report_death(struct kymo_hub *hub, struct task *task, int status);

/* REAP, and the end of the task. DEATH has been told. */
void hub_report_reap(struct kymo_hub *hub, struct task *task, int status);

#endif
