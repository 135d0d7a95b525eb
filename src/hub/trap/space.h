/* Memories with breakpoints. */
#ifndef KYMO_HUB_TRAP_SPACE_H
#define KYMO_HUB_TRAP_SPACE_H

#include "kymo/engine.h"

struct hub_break;
struct hub_space;
struct hub_process;

/* One owner more; less. */
int hub_space_insert(struct kymo_hub *hub, struct hub_process *process, uint64_t address);

/* Put a breakpoint that has its owners in again, where other code is mapped now. */
int hub_space_renew(struct kymo_hub *hub, const struct hub_process *process, uint64_t address);
void hub_space_remove(struct kymo_hub *hub, const struct hub_process *process, uint64_t address);

/* The process has other memory now, or has ended. Its engines' breakpoints are gone. */
void hub_space_leave(struct kymo_hub *hub, struct hub_process *process);

/* A process has made another one, which does not run yet. */
void hub_space_born(struct kymo_hub *hub, struct hub_process *maker, struct hub_process *child, bool is_vfork);

/* One whose maker is not known is let go. */
void hub_space_clean_unclaimed(struct kymo_hub *hub, pid_t tid);

/* Take out all there are. */
void hub_space_clear_all(struct kymo_hub *hub);

/* Free those that have been left for long; whether there are such. */
void hub_space_look_at_clock(struct kymo_hub *hub, uint64_t now);
bool hub_space_needs_clock(const struct kymo_hub *hub);

/* What an engine has put in goes with it. */
void hub_breakpoints_drop(struct kymo_hub *hub, struct kymo_engine *engine);

#endif
