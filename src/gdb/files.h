/* vFile: files of the machine that the process is on. On the main thread, as files may be slow. */
#ifndef KYMO_GDB_FILES_H
#define KYMO_GDB_FILES_H

#include "gdb/state.h"

void gdb_use_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_init_files(struct kymo_gdb *gdb);
void gdb_close_files(struct kymo_gdb *gdb);

#endif
