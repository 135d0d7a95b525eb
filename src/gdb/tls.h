/* Variables of threads (__thread): where a thread has its own copy. On the hub's thread. */
#ifndef KYMO_GDB_TLS_H
#define KYMO_GDB_TLS_H

#include "gdb/state.h"

/* qSymbol, after its colon: ":", by which the client offers to look up symbols, or its answer "ADDRESS:NAME" about
 * one. The reply asks for the next, until none is left. */
void gdb_take_symbol(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qGetTLSAddr, "thread,offset,link_map": the address of what is there in the block of a library (link_map 0: of a
 * static program). An error where the thread has no such block yet, or the C library is not glibc. */
void gdb_find_tls(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
