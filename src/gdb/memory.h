/* Memory, as it is without breakpoints. On the hub's thread. */
#ifndef KYMO_GDB_MEMORY_H
#define KYMO_GDB_MEMORY_H

#include "gdb/state.h"

/* m, M, X; qSearch:memory and qCRC. */
void gdb_read_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_read_binary(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_write_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_write_binary(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_search_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_sum_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
