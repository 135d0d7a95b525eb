/* Packets about the trace of branches: Qbtrace, and what qXfer reads of it. */
#ifndef KYMO_GDB_BTRACE_PACKETS_H
#define KYMO_GDB_BTRACE_PACKETS_H

#include "gdb/state.h"

/* Qbtrace: bts, off; of the general thread. */
void gdb_trace_branches(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* Qbtrace-conf: for threads whose trace begins later. */
void gdb_configure_branches(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* What is read of the general thread: its blocks; how it is traced. False: an error. */
bool gdb_make_btrace(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document);
bool gdb_make_btrace_conf(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document);

/* Nothing is traced any more, of a process or of all (0). On the main thread: waits until no thread is in a step that
 * has to be seen, for two seconds at most. */
void gdb_end_btrace(struct kymo_gdb *gdb, pid_t pid);

/* … and no tracepoint has steps made: its run ends. Before the process is let go of. */
void gdb_end_steps(struct kymo_gdb *gdb, pid_t pid);

#endif
