/*
 * What pads print: records that threads write (wire/prints.h) become texts, here. Each function says on which thread.
 * The memory is shared with a process, which may write anything at any time.
 */
#ifndef KYMO_GDB_PRINTS_H
#define KYMO_GDB_PRINTS_H

#include "gdb/state.h"

struct gdb_print;
struct kymo_wire_prints;

/* How much text is taken at a time. */
enum { GDB_PRINTS_MOST = 1 << 19 };

/* ---- on the main thread ---------------------------------------------------------------------- */

/* Make the slots free. `memory` is borrowed. NULL: memory is out. No pad prints yet. */
struct gdb_prints *gdb_prints_make(struct kymo_wire_prints *memory, uint32_t n_slots, uint32_t slot_size);

/* What records of this number print, the next one from 0 on. The format is copied. */
bool gdb_prints_add(struct gdb_prints *prints, uint64_t address, const struct gdb_print *print);

/* NULL is allowed. The hub's thread does not know of it any more. */
void gdb_prints_destroy(struct gdb_prints *prints);

/* ---- on the hub's thread --------------------------------------------------------------------- */

/* Append what was printed, of all pads, in the order in which it was: `printed` gets up to `most` bytes, and what was
 * lost is counted there. True: there is more. */
bool gdb_prints_collect(struct kymo_gdb *gdb, size_t most);

/* From now on, and no more: what is left is appended, or counted as lost. */
bool gdb_prints_begin(struct kymo_gdb *gdb, struct gdb_prints *prints);
void gdb_prints_end(struct kymo_gdb *gdb, const struct gdb_prints *prints);

#endif
