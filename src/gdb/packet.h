/*
 * Packets: `$data#checksum`, acknowledged by `+` or `-` until the client wants none (gdb manual, "Overview"). In data,
 * `}` escapes a byte, and `*` repeats the one before.
 */
#ifndef KYMO_GDB_PACKET_H
#define KYMO_GDB_PACKET_H

#include <stdbool.h>
#include <stddef.h>

#include "gdb/text.h"

#define GDB_PACKET_MAX 65536 /* bytes of data */

enum gdb_input {
	GDB_INPUT_NONE, /* all bytes are used up */
	GDB_INPUT_PACKET,
	GDB_INPUT_BROKEN, /* a packet that is too long, or whose checksum or escapes are wrong */
	GDB_INPUT_ACK,
	GDB_INPUT_NAK,
	GDB_INPUT_INTERRUPT, /* ^C */
	GDB_INPUT_NOISE,     /* a byte that the protocol has no use for */
};

/* Bytes that arrive, in whatever portions. All zero at first. */
struct gdb_reader {
	enum { GDB_OUTSIDE, GDB_IN_DATA, GDB_IN_ESCAPE, GDB_IN_SUM, GDB_IN_SUM_2 } state;
	struct gdb_text packet; /* without escapes */
	unsigned char sum;
	int given;
	bool is_broken;
};

void gdb_reader_deinit(struct gdb_reader *reader);

/* Take bytes until there is something to tell; `at` is after them then. The packet is valid until the next call. */
enum gdb_input gdb_reader_take(struct gdb_reader *reader, const char **at, const char *end);

/* Append `n` bytes of data as they are within a packet: escaped. */
void gdb_packet_escape(struct gdb_text *text, const void *bytes, size_t n);

/* How many of `n` bytes fit into `room` bytes of a packet, escaped. */
size_t gdb_packet_fitting(const void *bytes, size_t n, size_t room);

/* Append a whole packet with this data, which has its escapes already; runs are shortened. It begins with `lead`: '$',
 * or '%' for a notification. */
void gdb_packet_frame(struct gdb_text *text, char lead, const char *data, size_t n);

/* Undo run lengths of data, for readers of what this side has written. False: they are wrong. */
bool gdb_packet_expand(struct gdb_text *text, const char *data, size_t n);

#endif
