/* qXfer objects. On the hub's thread. */
#ifndef KYMO_GDB_XFER_H
#define KYMO_GDB_XFER_H

#include "gdb/state.h"

/* "features:read:target.xml:0,1000". */
void gdb_transfer(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
