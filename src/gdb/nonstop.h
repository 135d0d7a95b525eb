/* Non-stop: each thread is stopped and resumed for itself, and the client is notified. */
#ifndef KYMO_GDB_NONSTOP_H
#define KYMO_GDB_NONSTOP_H

#include "gdb/state.h"

/* ---- on the main thread ---------------------------------------------------------------------- */

/* QNonStop. Without non-stop all threads stop, which is waited for. */
void gdb_set_non_stop(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* vStopped: the client knows the last stop that was told. The reply is the next one, or OK. */
void gdb_acknowledge(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* ---- on the hub's thread --------------------------------------------------------------------- */

/* vCtrlC. */
void gdb_take_interrupt(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* ?: begin to report the stopped threads. */
void gdb_tell_standing_ones(struct kymo_gdb *gdb, struct gdb_text *reply);

/* The client has begun to look at threads, or to let them go on: from now on it is notified. */
void gdb_begin_notifying(struct kymo_gdb *gdb);

/* Append the notification that is due. False: there is none now. */
bool gdb_notify(struct kymo_gdb *gdb, struct gdb_text *text);

/* Whether the client knows that the thread is stopped, and so can resume it. */
bool gdb_is_known_to_stand(const struct gdb_thread *thread);

/* The client has gone, or wants all-stop: what it has not acknowledged was not told. */
void gdb_end_non_stop(struct kymo_gdb *gdb);

#endif
