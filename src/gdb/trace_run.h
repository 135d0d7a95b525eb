/* The run of tracepoints: it begins and ends, and threads have their breakpoints. On the hub's thread. */
#ifndef KYMO_GDB_TRACE_RUN_H
#define KYMO_GDB_TRACE_RUN_H

#include "gdb/state.h"

/* QTinit: forget all tracepoints, variables and frames. QTStart, QTStop: a run. */
void gdb_forget_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_start_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_stop_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qTStatus. */
void gdb_tell_tracing(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* Settings: QTBuffer:circular, QTBuffer:size, QTDisconnected, QTNotes, QTro. */
void gdb_set_circular(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_set_buffer_size(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_set_disconnected(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_take_notes(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_take_regions(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qTMinFTPILen: the smallest instruction that has room for a fast tracepoint. */
void gdb_tell_smallest(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* A tracepoint is enabled, or not any more: in a run its breakpoint goes in, or out. NULL, or why it cannot
 * be inserted. */
const char *gdb_trace_begin_point(struct kymo_gdb *gdb, struct gdb_tracepoint *point);
void gdb_trace_end_point(struct kymo_gdb *gdb, struct gdb_tracepoint *point);

/* The run is over, for this reason. Its breakpoints go out. May be called in a callback of an engine. */
void gdb_trace_end_run(struct kymo_gdb *gdb, enum gdb_trace_end end, unsigned int number, const char *failure);

/* The client has gone. Its run ends, unless it was to go on. */
void gdb_trace_lose_client(struct kymo_gdb *gdb);

#endif
