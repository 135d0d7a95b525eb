/* Trace state variables: numbers that agent expressions read and change. On the hub's thread. */
#ifndef KYMO_GDB_TRACE_VARIABLES_H
#define KYMO_GDB_TRACE_VARIABLES_H

#include "gdb/state.h"

/* QTDV: define one. qTV: its value now, or in the frame that is selected. qTfV, qTsV: all definitions. */
void gdb_define_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_tell_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_first_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_next_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* The value, or a new one. False: there is no such variable, or it is not to be changed. */
bool gdb_get_variable(struct gdb_tracing *tracing, unsigned int number, int64_t *ret);
bool gdb_set_variable_to(struct gdb_tracing *tracing, unsigned int number, int64_t value);

/* All are dropped that clients have defined. */
void gdb_reset_trace_variables(struct gdb_tracing *tracing);

#endif
