/* What a client finds when it comes, and what stays when it has gone. On the main thread. */
#ifndef KYMO_GDB_SESSION_H
#define KYMO_GDB_SESSION_H

#include "gdb/state.h"

/* Stop all threads for a client. False: they did not within a minute, or `wake` can be read. */
bool gdb_begin_session(struct kymo_gdb *gdb, int wake);

/* Breakpoints go. A launched process that is stopped waits for the next client, all others run on. */
void gdb_end_session(struct kymo_gdb *gdb);

#endif
