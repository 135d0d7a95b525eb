/* vCont, c, C, s, S. On the hub's thread. The reply is empty where threads run: it comes when they have stopped. */
#ifndef KYMO_GDB_RESUME_H
#define KYMO_GDB_RESUME_H

#include "gdb/state.h"

void gdb_continue_as_told(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply); /* vCont; */
void gdb_continue(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_continue_with_signal(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_step(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_step_with_signal(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
