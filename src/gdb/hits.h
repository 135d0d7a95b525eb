/* Hits of breakpoints that have conditions. On the hub's thread. */
#ifndef KYMO_GDB_HITS_H
#define KYMO_GDB_HITS_H

#include "gdb/state.h"

/* Whether a thread that stands at a breakpoint, by software or hardware (`type` is that of Z packets), is to stop
 * there: some condition is true, cannot be evaluated, or there is none. */
bool gdb_condition_holds(struct gdb_thread *thread, int type, uint64_t address);

/* Such a thread is to stop. If the breakpoint has commands they are run, and print to `printed`. False: it has none, or
 * they cannot be run; the thread stops. */
bool gdb_run_commands(struct gdb_thread *thread, int type, uint64_t address);

/* A client lets a thread go on that stands at a breakpoint of it, by software. If it is to stop there, that is a hit,
 * also where the client was told of the same one: a client that wants the thread to go on takes the breakpoint out. */
void gdb_hit_again(struct gdb_thread *thread);

#endif
