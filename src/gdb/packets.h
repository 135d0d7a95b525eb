/* All packets that the stub knows. */
#ifndef KYMO_GDB_PACKETS_H
#define KYMO_GDB_PACKETS_H

#include "gdb/state.h"

enum gdb_answer {
	GDB_ANSWERED, /* by the reply, which may be empty: the packet is not known */
	GDB_RUNS,     /* threads run, the reply comes when they have stopped */
	GDB_MUTE,     /* no reply is wanted */
};

/* Answer one packet. On the main thread. */
enum gdb_answer gdb_answer(struct kymo_gdb *gdb, const char *packet, size_t n, struct gdb_text *reply);

#endif
