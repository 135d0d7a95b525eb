/* Conditions of breakpoints in pads, in the threads themselves: docs/internals/gdb-pads.md. */
#ifndef KYMO_GDB_PADS_H
#define KYMO_GDB_PADS_H

#include "gdb/state.h"

/* ---- on the main thread ---------------------------------------------------------------------- */

/* Before a packet is answered. Pads are put in where threads are about to go on. They are taken out where a breakpoint
 * is to be in their way, or branches are to be traced. */
void gdb_pads_look(struct kymo_gdb *gdb, const char *packet, size_t n);

/* Take out all that a process has (0: all processes), before the stub lets go of it. Where the process cannot be frozen
 * yet, or a thread may return into a pad, they stay: call it once more when the stub has let go, or lets it run, and
 * wait then for threads to leave pads. */
void gdb_pads_remove(struct kymo_gdb *gdb, pid_t pid, bool is_waited_for);

/* Whether some have yet to be taken out. */
bool gdb_pads_are_in(const struct kymo_gdb *gdb, pid_t pid);

/* Whether some print, so that what they do has to be read now and then. */
bool gdb_pads_print(const struct kymo_gdb *gdb);

/* Whether the text of a process leads to some. On any thread. */
bool gdb_pads_are_reached(const struct kymo_gdb *gdb, pid_t pid);

/* Free what is left of processes that have ended. */
void gdb_pads_deinit(struct kymo_gdb *gdb);

/* ---- on the hub's thread --------------------------------------------------------------------- */

/* monitor set pads. */
void gdb_pads_set(struct kymo_gdb *gdb, enum kymo_gdb_pads pads);

#endif
