/* Blocks of code that a thread has executed, as gdb reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gdb/blocks.h"

enum { BLOCKS = GDB_BLOCKS_MIN / 24 };

/* What is read, as "100-104 200-208"; "none" for no such part. */
static const char *read_part(struct gdb_blocks *blocks, enum gdb_blocks_part part)
{
	static char text[64 * BLOCKS];
	struct gdb_text document = { 0 };
	unsigned long begin, end;
	size_t n = 0;

	text[0] = '\0';
	if (!gdb_blocks_put(blocks, part, &document)) {
		assert_int_equal(document.n, 0);
		gdb_text_deinit(&document);
		return "none";
	}
	gdb_text_bytes(&document, "", 1);
	assert_false(document.has_failed);
	assert_non_null(strstr(document.items, "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n"));
	for (const char *at = document.items; (at = strstr(at, "<block ")); at++) {
		assert_int_equal(sscanf(at, "<block begin=\"0x%lx\" end=\"0x%lx\"/>", &begin, &end), 2);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lx-%lx", n ? " " : "", begin, end);
	}
	gdb_text_deinit(&document);
	return text;
}

static void check_part(struct gdb_blocks *blocks, enum gdb_blocks_part part, const char *expected)
{
	assert_string_equal(read_part(blocks, part), expected);
}

static void begin(struct gdb_blocks *blocks)
{
	assert_int_equal(gdb_blocks_init(blocks, 0), GDB_BLOCKS_MIN);
	gdb_blocks_begin(blocks, 0x100, true);
}

static void sizes_are_bounded(void **state)
{
	struct gdb_blocks blocks;

	assert_int_equal(gdb_blocks_init(&blocks, 12345), 12345);
	assert_int_equal(blocks.capacity, 12345 / 24);
	gdb_blocks_deinit(&blocks);
	assert_int_equal(gdb_blocks_init(&blocks, SIZE_MAX), GDB_BLOCKS_MAX);
	gdb_blocks_deinit(&blocks);
	gdb_blocks_deinit(&blocks);
}

static void what_is_read_before_it_has_begun_is_empty(void **state)
{
	struct gdb_blocks blocks;

	assert_true(gdb_blocks_init(&blocks, 0));
	check_part(&blocks, GDB_BLOCKS_DELTA, "none");
	check_part(&blocks, GDB_BLOCKS_ALL, "");
	gdb_blocks_begin(&blocks, 0x100, false);
	check_part(&blocks, GDB_BLOCKS_DELTA, "none");
	check_part(&blocks, GDB_BLOCKS_NEW, "100-100");
	check_part(&blocks, GDB_BLOCKS_NEW, "");
	gdb_blocks_deinit(&blocks);
}

static void the_newest_block_ends_where_the_thread_stands(void **state)
{
	struct gdb_blocks blocks;

	begin(&blocks);
	check_part(&blocks, GDB_BLOCKS_NEW, "");
	check_part(&blocks, GDB_BLOCKS_DELTA, "0-100");
	gdb_blocks_execute(&blocks, 0x104, false);
	gdb_blocks_execute(&blocks, 0x106, false);
	check_part(&blocks, GDB_BLOCKS_DELTA, "0-106");
	gdb_blocks_execute(&blocks, 0x200, true);
	check_part(&blocks, GDB_BLOCKS_DELTA, "200-200 0-106");
	gdb_blocks_execute(&blocks, 0x200, true);
	gdb_blocks_execute(&blocks, 0x202, false);
	check_part(&blocks, GDB_BLOCKS_ALL, "200-202 200-200 100-106");
	check_part(&blocks, GDB_BLOCKS_DELTA, "0-202");
	gdb_blocks_deinit(&blocks);
}

/* A signal's handler, or the client, comes before the instruction at which the thread stood. */
static void an_instruction_that_is_not_executed_is_in_no_block(void **state)
{
	struct gdb_blocks blocks;

	begin(&blocks);
	gdb_blocks_move(&blocks, 0x300);
	check_part(&blocks, GDB_BLOCKS_DELTA, "none");
	check_part(&blocks, GDB_BLOCKS_NEW, "300-300");
	gdb_blocks_execute(&blocks, 0x302, false);
	gdb_blocks_execute(&blocks, 0x305, false);
	gdb_blocks_move(&blocks, 0x400);
	check_part(&blocks, GDB_BLOCKS_DELTA, "400-400 0-302");
	gdb_blocks_move(&blocks, 0x302);
	check_part(&blocks, GDB_BLOCKS_DELTA, "none");
	check_part(&blocks, GDB_BLOCKS_ALL, "302-302 300-302");
	gdb_blocks_deinit(&blocks);
}

static void old_blocks_go(void **state)
{
	struct gdb_blocks blocks;
	const char *text;

	begin(&blocks);
	for (uint64_t i = 0; i < BLOCKS; i++)
		gdb_blocks_execute(&blocks, 0x1000 + i, true);
	text = read_part(&blocks, GDB_BLOCKS_DELTA);
	assert_non_null(strstr(text, " 0-100"));
	for (uint64_t i = 0; i <= BLOCKS; i++)
		gdb_blocks_execute(&blocks, 0x2000 + i, true);
	check_part(&blocks, GDB_BLOCKS_DELTA, "none");
	text = read_part(&blocks, GDB_BLOCKS_ALL);
	assert_null(strstr(text, "100-100"));
	assert_non_null(strstr(text, " 2000-2000"));
	check_part(&blocks, GDB_BLOCKS_NEW, "");
	gdb_blocks_deinit(&blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(what_is_read_before_it_has_begun_is_empty),
		cmocka_unit_test(the_newest_block_ends_where_the_thread_stands),
		cmocka_unit_test(an_instruction_that_is_not_executed_is_in_no_block),
		cmocka_unit_test(old_blocks_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
