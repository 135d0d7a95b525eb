/* Framing: checksums, escapes, run lengths, and what is no packet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gdb/packet.h"

/* All that some bytes tell, one after the other. */
static size_t take_all(struct gdb_reader *reader, const char *bytes, size_t n, enum gdb_input *inputs, size_t max)
{
	const char *at = bytes;
	enum gdb_input input;
	size_t count = 0;

	while ((input = gdb_reader_take(reader, &at, bytes + n)) != GDB_INPUT_NONE && count < max)
		inputs[count++] = input;
	return count;
}

static void assert_packet(const char *bytes, size_t n, const char *data, size_t size)
{
	struct gdb_reader reader = { 0 };
	const char *at = bytes;
	enum gdb_input input;

	do {
		input = gdb_reader_take(&reader, &at, bytes + n);
	} while (input == GDB_INPUT_NOISE);
	assert_int_equal(input, GDB_INPUT_PACKET);
	assert_int_equal(reader.packet.n, size);
	if (size)
		assert_memory_equal(reader.packet.items, data, size);
	gdb_reader_deinit(&reader);
}

static void packets_are_read(void **state)
{
	assert_packet("$OK#9a", 6, "OK", 2);
	assert_packet("$#00", 4, "", 0);
	assert_packet("noise$g#67", 10, "g", 1);
	assert_packet("$X}\x03}\x04}\x5d#33", 11, "X#$}", 4);
}

static void bytes_come_one_by_one(void **state)
{
	static const char bytes[] = "$vCont?#49";
	struct gdb_reader reader = { 0 };
	enum gdb_input input = GDB_INPUT_NONE;

	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		const char *at = bytes + i;

		assert_int_equal(input, GDB_INPUT_NONE);
		input = gdb_reader_take(&reader, &at, at + 1);
	}
	assert_int_equal(input, GDB_INPUT_PACKET);
	assert_memory_equal(reader.packet.items, "vCont?", 6);
	gdb_reader_deinit(&reader);
}

static void acknowledgements_and_interrupts_are_told(void **state)
{
	struct gdb_reader reader = { 0 };
	enum gdb_input inputs[8];

	assert_int_equal(take_all(&reader, "+-\x03P\r+", 6, inputs, 8), 6);
	assert_int_equal(inputs[0], GDB_INPUT_ACK);
	assert_int_equal(inputs[1], GDB_INPUT_NAK);
	assert_int_equal(inputs[2], GDB_INPUT_INTERRUPT);
	assert_int_equal(inputs[3], GDB_INPUT_NOISE);
	assert_int_equal(inputs[4], GDB_INPUT_NOISE);
	assert_int_equal(inputs[5], GDB_INPUT_ACK);
	gdb_reader_deinit(&reader);
}

static void wrong_packets_are_told(void **state)
{
	static const char *const wrong[] = { "$OK#9b", "$OK#zz", "$a}#de" };
	struct gdb_reader reader = { 0 };
	enum gdb_input input;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(take_all(&reader, wrong[i], 6, &input, 1), 1);
		assert_int_equal(input, GDB_INPUT_BROKEN);
	}
	/* The next one is read from its beginning. */
	assert_int_equal(take_all(&reader, "$half$OK#9a", 11, &input, 1), 1);
	assert_int_equal(input, GDB_INPUT_PACKET);
	gdb_reader_deinit(&reader);
}

static void a_packet_that_is_too_long_keeps_nothing_more(void **state)
{
	const size_t n = GDB_PACKET_MAX + 5000;
	struct gdb_reader reader = { 0 };
	char *bytes = malloc(n + 4);
	enum gdb_input input;

	memset(bytes, 'a', n);
	bytes[0] = '$';
	memcpy(bytes + n, "#00", 4);
	assert_int_equal(take_all(&reader, bytes, n + 3, &input, 1), 1);
	assert_int_equal(input, GDB_INPUT_BROKEN);
	assert_true(reader.packet.n <= GDB_PACKET_MAX);
	gdb_reader_deinit(&reader);
	free(bytes);
}

static void assert_framed(const char *data, const char *packet)
{
	struct gdb_text text = { 0 };

	gdb_packet_frame(&text, '$', data, strlen(data));
	assert_int_equal(text.n, strlen(packet));
	assert_memory_equal(text.items, packet, text.n);
	gdb_text_deinit(&text);
}

static void runs_are_shortened(void **state)
{
	assert_framed("OK", "$OK#9a");
	assert_framed("", "$#00");
	assert_framed("000", "$000#90");
	assert_framed("0000", "$0* #7a");
	/* Seven and eight zeros: six and seven repetitions would be told by '#' and '$'. */
	assert_framed("0000000", "$0*\"0#ac");
	assert_framed("00000000", "$0*\"00#dc");
}

/* What is written is read as it was, whatever it is. */
static void anything_survives_the_way(void **state)
{
	uint32_t seed = 12345;

	for (unsigned int round = 0; round < 2000; round++) {
		struct gdb_text escaped = { 0 }, packet = { 0 }, expanded = { 0 };
		char data[300];
		size_t n = 0, i = 0;

		for (size_t left = round % 300; n < left; n++) {
			seed = seed * 1103515245 + 12345;
			data[n] = seed >> 28 ? (n ? data[n - 1] : '*') : (char)(seed >> 16);
		}
		gdb_packet_escape(&escaped, data, n);
		gdb_packet_frame(&packet, '$', escaped.items, escaped.n);
		assert_true(gdb_packet_expand(&expanded, packet.items + 1, packet.n - 4));
		assert_int_equal(expanded.n, escaped.n);
		for (size_t at = 0; at < expanded.n; at++, i++) {
			char c = expanded.items[at];

			if (c == '}')
				c = (char)(expanded.items[++at] ^ 0x20);
			assert_int_equal(c, data[i]);
		}
		assert_int_equal(i, n);
		gdb_text_deinit(&escaped);
		gdb_text_deinit(&packet);
		gdb_text_deinit(&expanded);
	}
}

static void parts_fit_with_their_escapes(void **state)
{
	assert_int_equal(gdb_packet_fitting("abcd", 4, 3), 3);
	assert_int_equal(gdb_packet_fitting("a#cd", 4, 3), 2);
	assert_int_equal(gdb_packet_fitting("####", 4, 3), 1);
	assert_int_equal(gdb_packet_fitting("ab", 2, 100), 2);
}

static void wrong_runs_are_refused(void **state)
{
	struct gdb_text text = { 0 };

	assert_false(gdb_packet_expand(&text, "* ", 2));
	assert_false(gdb_packet_expand(&text, "0*", 2));
	assert_false(gdb_packet_expand(&text, "0*\x10", 3));
	gdb_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_read),
		cmocka_unit_test(bytes_come_one_by_one),
		cmocka_unit_test(acknowledgements_and_interrupts_are_told),
		cmocka_unit_test(wrong_packets_are_told),
		cmocka_unit_test(a_packet_that_is_too_long_keeps_nothing_more),
		cmocka_unit_test(runs_are_shortened),
		cmocka_unit_test(anything_survives_the_way),
		cmocka_unit_test(parts_fit_with_their_escapes),
		cmocka_unit_test(wrong_runs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
