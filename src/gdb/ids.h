/* Which threads there are, and which one a packet names. On the hub's thread. */
#ifndef KYMO_GDB_IDS_H
#define KYMO_GDB_IDS_H

#include "gdb/state.h"

void gdb_set_thread(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);        /* H */
void gdb_tell_thread_alive(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply); /* T */
void gdb_current_thread(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);    /* qC */
void gdb_first_threads(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);     /* qfThreadInfo */
void gdb_more_threads(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_thread_name(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);   /* qThreadExtraInfo */
void gdb_tell_attached(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply); /* qAttached */

#endif
