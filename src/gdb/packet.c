#include "gdb/packet.h"

#include <string.h>

#include "base/hex.h"

enum {
	ESCAPE_BIT = 0x20,
	RUN_LEAST = 3, /* repetitions that are worth a run */
	RUN_MOST = 97,
	RUN_BASE = 29, /* of the character that tells how many */
};

void gdb_reader_deinit(struct gdb_reader *reader)
{
	gdb_text_deinit(&reader->packet);
}

static void begin_packet(struct gdb_reader *reader)
{
	gdb_text_clear(&reader->packet);
	reader->sum = 0;
	reader->is_broken = false;
	reader->state = GDB_IN_DATA;
}

static void keep(struct gdb_reader *reader, char c)
{
	if (reader->packet.n >= GDB_PACKET_MAX)
		reader->is_broken = true;
	else
		gdb_text_bytes(&reader->packet, &c, 1);
}

static enum gdb_input take_outside(struct gdb_reader *reader, char c)
{
	switch (c) {
	case '$':
		begin_packet(reader);
		return GDB_INPUT_NONE;
	case '+':
		return GDB_INPUT_ACK;
	case '-':
		return GDB_INPUT_NAK;
	case 3:
		return GDB_INPUT_INTERRUPT;
	default:
		return GDB_INPUT_NOISE;
	}
}

/* A `$` within data is the beginning of another packet: the rest of this one was lost. */
static enum gdb_input take_data(struct gdb_reader *reader, char c)
{
	if (c == '$') {
		begin_packet(reader);
		return GDB_INPUT_NONE;
	}
	if (c == '#') {
		reader->is_broken |= reader->state == GDB_IN_ESCAPE;
		reader->state = GDB_IN_SUM;
		return GDB_INPUT_NONE;
	}
	reader->sum = (unsigned char)(reader->sum + (unsigned char)c);
	if (reader->state == GDB_IN_ESCAPE) {
		keep(reader, (char)(c ^ ESCAPE_BIT));
		reader->state = GDB_IN_DATA;
	} else if (c == '}') {
		reader->state = GDB_IN_ESCAPE;
	} else {
		keep(reader, c);
	}
	return GDB_INPUT_NONE;
}

static enum gdb_input end_packet(struct gdb_reader *reader, int low)
{
	reader->state = GDB_OUTSIDE;
	if (reader->given < 0 || low < 0 || (reader->given << 4 | low) != reader->sum || reader->packet.has_failed)
		reader->is_broken = true;
	return reader->is_broken ? GDB_INPUT_BROKEN : GDB_INPUT_PACKET;
}

enum gdb_input gdb_reader_take(struct gdb_reader *reader, const char **at, const char *limit)
{
	enum gdb_input input = GDB_INPUT_NONE;

	while (input == GDB_INPUT_NONE && *at < limit) {
		const char c = *(*at)++;

		switch (reader->state) {
		case GDB_OUTSIDE:
			input = take_outside(reader, c);
			break;
		case GDB_IN_DATA:
		case GDB_IN_ESCAPE:
			input = take_data(reader, c);
			break;
		case GDB_IN_SUM:
			reader->given = kymo_hex_digit(c);
			reader->state = GDB_IN_SUM_2;
			break;
		case GDB_IN_SUM_2:
			input = end_packet(reader, kymo_hex_digit(c));
			break;
		}
	}
	return input;
}

static bool is_special(char c)
{
	return c == '#' || c == '$' || c == '}' || c == '*';
}

void gdb_packet_escape(struct gdb_text *text, const void *bytes, size_t n)
{
	const char *at = bytes;

	for (size_t i = 0; i < n; i++) {
		if (is_special(at[i]))
			gdb_text_bytes(text, (const char[]){ '}', (char)(at[i] ^ ESCAPE_BIT) }, 2);
		else
			gdb_text_bytes(text, &at[i], 1);
	}
}

size_t gdb_packet_fitting(const void *bytes, size_t n, size_t room)
{
	const char *at = bytes;
	size_t used = 0, i;

	for (i = 0; i < n; i++) {
		used += is_special(at[i]) ? 2 : 1;
		if (used > room)
			break;
	}
	return i;
}

/* How many times data[0] is there again. */
static size_t repetitions(const char *data, size_t n)
{
	size_t count = 0;

	while (count + 1 < n && count < RUN_MOST && data[count + 1] == data[0])
		count++;
	return count;
}

void gdb_packet_frame(struct gdb_text *text, char lead, const char *data, size_t n)
{
	const size_t from = text->n + 1;
	size_t n_done = 0;
	unsigned char sum = 0;

	gdb_text_bytes(text, &lead, 1);
	for (size_t i = 0; i < n; i++) {
		size_t count = data[i] == '}' || (i && data[i - 1] == '}') ? 0 : repetitions(data + i, n - i);

		/* A run is marked by a character of which no packet is made. */
		while (count >= RUN_LEAST && strchr("#$+-}*", (char)(count + RUN_BASE)))
			count--;
		if (count < RUN_LEAST)
			continue;
		gdb_text_bytes(text, data + n_done, i + 1 - n_done);
		gdb_text_bytes(text, (const char[]){ '*', (char)(count + RUN_BASE) }, 2);
		i += count;
		n_done = i + 1;
	}
	if (n_done < n) /* an empty reply may have no data at all */
		gdb_text_bytes(text, data + n_done, n - n_done);
	for (size_t i = from; i < text->n; i++)
		sum = (unsigned char)(sum + (unsigned char)text->items[i]);
	gdb_text_format(text, "#%02x", sum);
}

bool gdb_packet_expand(struct gdb_text *text, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (data[i] != '*') {
			gdb_text_bytes(text, &data[i], 1);
			continue;
		}
		if (i == 0 || i + 1 >= n || data[i + 1] < RUN_BASE + RUN_LEAST || data[i + 1] > RUN_BASE + RUN_MOST)
			return false;
		for (int k = data[i + 1] - RUN_BASE; k > 0; k--)
			gdb_text_bytes(text, &data[i - 1], 1);
		i++;
	}
	return !text->has_failed;
}
