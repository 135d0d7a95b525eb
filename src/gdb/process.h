/* Processes that a client begins to debug. On the main thread, which waits; each looks at the state of the stub by
 * functions that run on the hub's thread. */
#ifndef KYMO_GDB_PROCESS_H
#define KYMO_GDB_PROCESS_H

#include "gdb/state.h"

/* vAttach, vRun, R. An empty reply of R is right: none is wanted. */
void gdb_attach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_run(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_restart(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
