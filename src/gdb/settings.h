/* Packets that store what the client wants. On the hub's thread. */
#ifndef KYMO_GDB_SETTINGS_H
#define KYMO_GDB_SETTINGS_H

#include "gdb/state.h"

void gdb_pass_signals(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_program_signals(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_catch_calls(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_tell_threads(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_disable_randomization(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_with_shell(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_set_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_unset_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_reset_variables(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_set_folder(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_support(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply); /* qSupported */

void gdb_free_environment(struct kymo_gdb *gdb);

#endif
