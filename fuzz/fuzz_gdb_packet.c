/* Any bytes as what a client of the debugger stub sends: framing, then the parsers of numbers, ids and bytes. A packet
 * is written again, too, with its escapes and runs. */
#include "fuzz.h"
#include "gdb/packet.h"
#include "gdb/words.h"

/* Nothing is taken beyond the end, and what is refused is left as it was. */
static void read_words(const char *packet, size_t n)
{
	const struct gdb_words all = { packet, packet + n };
	struct gdb_words words = all;
	uint8_t bytes[16];
	char text[32];
	uint64_t number;
	struct gdb_id id;

	if (!gdb_take_number(&words, &number))
		check(words.at == all.at);
	words = all;
	if (gdb_take_id(&words, &id))
		check(id.tid >= -1 && id.pid >= -1);
	else
		check(words.at == all.at);
	words = all;
	if (gdb_take_hex(&words, bytes, sizeof(bytes)))
		check((size_t)(words.at - all.at) == 2 * sizeof(bytes));
	words = all;
	if (gdb_take_hex_string(&words, text, sizeof(text)))
		check(strlen(text) == (size_t)(words.at - all.at) / 2);
	words = all;
	while (!gdb_words_are_over(&words)) {
		const struct gdb_words part = gdb_take_until(&words, ';');

		check(part.at <= part.end && part.end <= all.end);
	}
}

/* Written again, it is the same packet. */
static void write_again(const struct gdb_text *packet)
{
	struct gdb_text escaped = { 0 }, framed = { 0 }, expanded = { 0 };

	gdb_packet_escape(&escaped, packet->items, packet->n);
	gdb_packet_frame(&framed, '$', escaped.items, escaped.n);
	check(framed.n >= 4 && gdb_packet_expand(&expanded, framed.items + 1, framed.n - 4));
	check(expanded.n == escaped.n && (!expanded.n || !memcmp(expanded.items, escaped.items, escaped.n)));
	gdb_text_deinit(&escaped);
	gdb_text_deinit(&framed);
	gdb_text_deinit(&expanded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct gdb_reader reader = { 0 };
	enum gdb_input input;

	while ((input = gdb_reader_take(&reader, &at, end)) != GDB_INPUT_NONE) {
		check(at <= end && reader.packet.n <= GDB_PACKET_MAX);
		if (input != GDB_INPUT_PACKET)
			continue;
		read_words(reader.packet.n ? reader.packet.items : "", reader.packet.n);
		write_again(&reader.packet);
	}
	gdb_reader_deinit(&reader);
	return 0;
}
