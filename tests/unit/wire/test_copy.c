/* Memory out of copies, whatever they say of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/copy.h"

/* "hello" at 0x1000, "world!" behind it, and "x" at 0x2000. */
static size_t make(uint8_t *out)
{
	static const struct {
		uint64_t address;
		const char *text;
	} copies[] = { { 0x1000, "hello" }, { 0x1005, "world!" }, { 0x2000, "x" } };
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		const struct kymo_copied copied = { .address = copies[i].address, .size = (uint32_t)strlen(copies[i].text) };

		memcpy(out + at, &copied, sizeof(copied));
		memcpy(out + at + sizeof(copied), copies[i].text, copied.size);
		at += sizeof(copied) + ((copied.size + 7u) & ~7u);
	}
	return at;
}

static void what_was_copied_is_read_from_any_byte_on(void **state)
{
	uint8_t bytes[256] = { 0 };
	const struct kymo_copies copies[2] = { { bytes, make(bytes) }, { 0 } };
	char out[64] = "";

	assert_int_equal(kymo_copies_read(copies, 1, 0x1000, out, 11), 11);
	assert_memory_equal(out, "helloworld!", 11);
	assert_int_equal(kymo_copies_read(copies, 2, 0x1003, out, 64), 8);
	assert_memory_equal(out, "loworld!", 8);
	assert_int_equal(kymo_copies_read(copies, 2, 0x2000, out, 1), 1);
	assert_int_equal(kymo_copies_read(copies, 2, 0xfff, out, 4), 0);
	assert_int_equal(kymo_copies_read(copies + 1, 1, 0x1000, out, 4), 0);
}

static void two_areas_complete_each_other(void **state)
{
	static const struct {
		struct kymo_copied copied;
		char text[8];
	} first = { { 0x1000, 4, 0 }, "abcd" }, second = { { 0x1004, 4, 0 }, "efgh" };
	const struct kymo_copies copies[2] = { { &second, sizeof(second) }, { &first, sizeof(first) } };
	char out[8];

	assert_int_equal(kymo_copies_read(copies, 2, 0x1000, out, 8), 8);
	assert_memory_equal(out, "abcdefgh", 8);
}

static void damaged_copies_end_where_they_lie(void **state)
{
	uint8_t bytes[256] = { 0 };
	const size_t size = make(bytes);
	char out[16];

	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *exact = test_malloc(cut + 1);
		const struct kymo_copies copies = { exact, cut };

		memcpy(exact, bytes, cut);
		kymo_copies_read(&copies, 1, 0x1003, out, sizeof(out));
		assert_int_equal(kymo_copies_read(&copies, 1, 0x3000, out, sizeof(out)), 0);
		test_free(exact);
	}
	memset(bytes + offsetof(struct kymo_copied, size), 0xff, 4);
	assert_int_equal(kymo_copies_read(&(struct kymo_copies){ bytes, size }, 1, 0x1000, out, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_copied_is_read_from_any_byte_on),
		cmocka_unit_test(two_areas_complete_each_other),
		cmocka_unit_test(damaged_copies_end_where_they_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
