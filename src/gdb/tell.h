/* Stop replies. */
#ifndef KYMO_GDB_TELL_H
#define KYMO_GDB_TELL_H

#include "gdb/state.h"

void gdb_tell_stop(struct gdb_thread *thread, struct gdb_text *reply);
void gdb_tell_end(const struct kymo_gdb *gdb, const struct gdb_end *end, struct gdb_text *reply);

/* Whether the user wants no such packet (--disable-packet): "vCont", "T", "Tthread", "qC" … */
bool gdb_is_disabled(const struct kymo_gdb *gdb, const char *name);

/* Tell the user, by the words of gdbserver. */
void gdb_say(const struct kymo_gdb *gdb, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
