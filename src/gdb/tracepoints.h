/* Definitions of tracepoints, as packets have them. On the hub's thread. */
#ifndef KYMO_GDB_TRACEPOINTS_H
#define KYMO_GDB_TRACEPOINTS_H

#include "gdb/state.h"

/* QTDP: a tracepoint, or actions of the one that was defined last. QTDPsrc: what its user has typed. */
void gdb_define_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_define_source(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* QTEnable, QTDisable: in a run. */
void gdb_enable_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_disable_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qTP: how often it was hit, and how many bytes its frames have taken. */
void gdb_tell_tracepoint(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* qTfP, qTsP: all definitions, one piece after the other. */
void gdb_first_piece(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_next_piece(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
