/* Frames of a trace run, and the client that looks at one. On the hub's thread. */
#ifndef KYMO_GDB_TRACE_FRAMES_H
#define KYMO_GDB_TRACE_FRAMES_H

#include "gdb/state.h"

/* QTFrame: select a frame. qTBuffer: all bytes of frames. */
void gdb_select_frame(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_upload_frames(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qXfer:traceframe-info: what the selected frame has. */
bool gdb_make_frame_info(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document);

/* Of the selected frame, which has to be there: bytes from an address on (how many), all registers as a `g` packet has
 * them, a variable. */
size_t gdb_frame_memory(const struct gdb_tracing *tracing, uint64_t address, void *ret, size_t size);
bool gdb_frame_registers(const struct gdb_tracing *tracing, uint8_t *ret);
bool gdb_frame_variable(const struct gdb_tracing *tracing, unsigned int number, int64_t *ret);
uint64_t gdb_frame_pc(const struct gdb_tracing *tracing);

/* Whether a client has said that the program does not change all of this memory. */
bool gdb_is_constant(const struct gdb_tracing *tracing, uint64_t address, size_t size);

#endif
