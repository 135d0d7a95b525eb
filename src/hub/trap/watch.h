/* Debug registers of engines. */
#ifndef KYMO_HUB_TRAP_WATCH_H
#define KYMO_HUB_TRAP_WATCH_H

#include "kymo/engine.h"

struct task;

/* Whether the processor can watch that. */
bool hub_watch_can(enum kymo_watch watch, uint64_t address, size_t size);

/* Rows of the table in local.c; include/kymo/engine.h has the contracts. */
int hub_local_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		    unsigned int *slot_ret);
int hub_local_unwatch(struct kymo_engine *engine, unsigned int slot);

/* A thread has stopped for a SIGTRAP. True: a debug register has raised it, and the rest is as for
 * hub_breakpoint_stopped(). `hits_ret` has the slots that are to be told, as bits. `is_step`: it may be the end of a
 * step as well. */
bool hub_watch_stopped(struct kymo_hub *hub, struct task *task, bool is_step, unsigned int *hits_ret, int *group_ret);

/* What is to be told of a hit. False: nothing. */
bool hub_watch_report(const struct task *task, unsigned int slot, struct kymo_signal_report *ret);

/* Whether an engine is to be told that report. */
bool hub_watch_is_owner(const struct kymo_engine *engine, const void *report);

void hub_watches_drop(struct kymo_engine *engine);

/* A stopped thread goes on, or is detached (`all`): clear registers that no engine claims any more. */
void hub_watches_clear(struct kymo_hub *hub, struct task *task, bool all);

/* The kernel has cleared them. */
void hub_watches_forget(struct kymo_hub *hub, struct task *task);

#endif
