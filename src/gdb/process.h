/* Processes that begin to be debugged, and end to be. On the main thread, which waits; each looks at the state of the
 * stub by functions that run on the hub's thread. */
#ifndef KYMO_GDB_PROCESS_H
#define KYMO_GDB_PROCESS_H

#include "gdb/state.h"

/* vAttach, vRun, vKill, k, D, R. An empty reply of k and R is right: none is wanted. */
void gdb_attach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_run(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_kill(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_kill_all(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_detach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_restart(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* Let go of all processes, and wait until their threads run as they were. */
void gdb_leave_all(struct kymo_gdb *gdb);

void gdb_free_argv(struct kymo_gdb *gdb);

#endif
