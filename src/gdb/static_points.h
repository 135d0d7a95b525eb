/* Static tracepoints: what a client is told of markers. On the main thread, as files of the process are read. */
#ifndef KYMO_GDB_STATIC_POINTS_H
#define KYMO_GDB_STATIC_POINTS_H

#include "gdb/state.h"

/* qTfSTM, qTsSTM: all markers of the process that the client has selected, some a packet. */
void gdb_first_markers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_next_markers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qTSTMat: the marker at an address. */
void gdb_tell_marker(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
