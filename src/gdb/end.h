/* Processes that end to be debugged. On the main thread, which waits; each looks at the state of the stub by functions
 * that run on the hub's thread. */
#ifndef KYMO_GDB_END_H
#define KYMO_GDB_END_H

#include "gdb/state.h"

/* vKill, k, D. An empty reply of k is right: none is wanted. */
void gdb_kill(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_kill_all(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_detach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* Kill what the stub has launched, for it to be launched again. */
void gdb_kill_launched(struct kymo_gdb *gdb);

/* Let go of all processes, or of one. Their threads stop once more, and then run as they were. This function does not
 * wait for that. */
void gdb_leave(struct kymo_gdb *gdb, pid_t pid);

/* Tell the hub that the ends of launched processes are known. */
void gdb_wait_for_ended(struct kymo_gdb *gdb);

#endif
