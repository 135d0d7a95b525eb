/* qXfer objects. */
#ifndef KYMO_GDB_XFER_H
#define KYMO_GDB_XFER_H

#include "gdb/state.h"

/* "features:read:target.xml:0,1000", of a process. On the hub's thread. */
void gdb_transfer(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* "read:processes:0,1000", of the machine. On the main thread: it takes long. */
void gdb_transfer_osdata(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
