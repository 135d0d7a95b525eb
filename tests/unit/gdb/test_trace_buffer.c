/* The buffer of a trace run: frames come back as they were added, also where they wrap around its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gdb/trace_buffer.h"

enum { REGISTERS = 24 };

/* An 'M' block of `n` bytes that are all `value`, and a 'V' block. */
static size_t make_blocks(uint8_t *ret, uint64_t address, uint16_t n, uint8_t value)
{
	const uint32_t number = 7;
	const uint64_t content = value;

	ret[0] = 'M';
	memcpy(ret + 1, &address, 8);
	memcpy(ret + 9, &n, 2);
	memset(ret + 11, value, n);
	ret[11 + n] = 'V';
	memcpy(ret + 12 + n, &number, 4);
	memcpy(ret + 16 + n, &content, 8);
	return 24u + n;
}

static void check_frame(const struct gdb_trace_buffer *buffer, size_t frame, unsigned int number, uint8_t value)
{
	struct gdb_trace_block block;
	uint64_t content = 0;
	uint8_t bytes[256];
	size_t at = 0;

	assert_int_equal(gdb_trace_buffer_number(buffer, frame), number);
	assert_int_equal(gdb_trace_buffer_pc(buffer, frame), 0x1000 + number);
	assert_true(gdb_trace_buffer_next(buffer, frame, &at, &block));
	assert_int_equal(block.kind, 'M');
	assert_int_equal(block.address, 0x2000 + number);
	gdb_trace_buffer_read(buffer, block.at, bytes, block.size);
	for (size_t i = 0; i < block.size; i++)
		assert_int_equal(bytes[i], value);
	assert_true(gdb_trace_buffer_next(buffer, frame, &at, &block));
	assert_int_equal(block.kind, 'V');
	assert_int_equal(block.address, 7);
	gdb_trace_buffer_read(buffer, block.at, &content, sizeof(content));
	assert_int_equal(content, value);
	assert_false(gdb_trace_buffer_next(buffer, frame, &at, &block));
}

static bool add(struct gdb_trace_buffer *buffer, unsigned int number, uint16_t n)
{
	uint8_t blocks[512];

	return gdb_trace_buffer_add(buffer, number, 0x1000 + number, blocks,
				    make_blocks(blocks, 0x2000 + number, n, (uint8_t)number));
}

static void test_a_full_one_keeps_what_it_has(void **state)
{
	struct gdb_trace_buffer buffer = { 0 };

	assert_true(gdb_trace_buffer_begin(&buffer, 100, REGISTERS, false));
	assert_true(add(&buffer, 1, 10)); /* 40 bytes */
	assert_true(add(&buffer, 2, 10));
	assert_false(add(&buffer, 3, 10));
	assert_int_equal(gdb_trace_buffer_used(&buffer), 80);
	assert_int_equal(gdb_trace_buffer_count(&buffer), 2);
	assert_true(gdb_trace_buffer_add(&buffer, 4, 0, NULL, 0)); /* a frame without blocks */
	assert_int_equal(buffer.n_created, 3);
	check_frame(&buffer, 0, 1, 1);
	check_frame(&buffer, 1, 2, 2);
	gdb_trace_buffer_deinit(&buffer);
	assert_int_equal(gdb_trace_buffer_count(&buffer), 0);
	assert_false(add(&buffer, 1, 1)); /* no buffer at all */
}

static void test_a_circular_one_keeps_the_newest(void **state)
{
	struct gdb_trace_buffer buffer = { 0 };

	assert_true(gdb_trace_buffer_begin(&buffer, 307, REGISTERS, true));
	for (unsigned int i = 1; i < 20000; i++) {
		assert_true(add(&buffer, i % 1000 + 1, (uint16_t)(i % 97)));
		assert_true(gdb_trace_buffer_used(&buffer) <= buffer.size);
		for (size_t j = 0, n = gdb_trace_buffer_count(&buffer); j < n; j++) {
			const unsigned int number = (unsigned int)(i - (n - 1 - j)) % 1000 + 1;

			check_frame(&buffer, j, number, (uint8_t)number);
		}
	}
	assert_int_equal(buffer.n_created, 19999);
	assert_true(buffer.notes.n < 5000); /* notes of dropped frames go */
	assert_false(add(&buffer, 1, 300)); /* more than all of it */
	gdb_trace_buffer_deinit(&buffer);
}

static void test_registers(void **state)
{
	struct gdb_trace_buffer buffer = { 0 };
	struct gdb_trace_block block;
	uint8_t blocks[1 + REGISTERS] = { 'R', 1, 2, 3 };
	size_t at = 0;

	assert_true(gdb_trace_buffer_begin(&buffer, 64, REGISTERS, false));
	assert_true(gdb_trace_buffer_add(&buffer, 0xffff, 1, blocks, sizeof(blocks)));
	assert_int_equal(gdb_trace_buffer_number(&buffer, 0), 0xffff);
	assert_true(gdb_trace_buffer_next(&buffer, 0, &at, &block));
	assert_int_equal(block.kind, 'R');
	assert_int_equal(block.size, REGISTERS);
	assert_false(gdb_trace_buffer_next(&buffer, 0, &at, &block));
	gdb_trace_buffer_deinit(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_full_one_keeps_what_it_has),
		cmocka_unit_test(test_a_circular_one_keeps_the_newest),
		cmocka_unit_test(test_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
