/* Memory out of copies, whatever they say of themselves; and copies of memory, of which any page may not be there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/copy.h"

/* "hello" at 0x1000, "world!" after it, and "x" at 0x2000. */
static size_t make(uint8_t *out)
{
	static const struct {
		uint64_t address;
		const char *text;
	} copies[] = { { 0x1000, "hello" }, { 0x1005, "world!" }, { 0x2000, "x" } };
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		const struct kymo_copied copied = { .address = copies[i].address,
						    .size = (uint32_t)strlen(copies[i].text) };

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

/* ---- making them ----------------------------------------------------------------------------- */

enum { BASE = 0x10000, PAGES = 3, PAGE = 4096, ROOM = 60000 };

/* A memory of some pages, behind which there is nothing. */
struct memory {
	uint8_t bytes[PAGES * PAGE];
	size_t n_reads;
};

static int read_it(void *context, uint64_t address, void *out, size_t size)
{
	struct memory *memory = context;

	memory->n_reads++;
	if (address < BASE || address - BASE > sizeof(memory->bytes) || size > sizeof(memory->bytes) - (address - BASE))
		return -EIO;
	memcpy(out, memory->bytes + (address - BASE), size);
	return 0;
}

static struct memory *create_memory(void)
{
	struct memory *memory = test_calloc(1, sizeof(*memory));

	memset(memory->bytes, 'm', sizeof(memory->bytes));
	return memory;
}

/* The copies that are made of `memory`, with `capacity` bytes of room; to be freed. */
static struct kymo_copies copy(struct memory *memory, const struct kymo_copy *what, const uint64_t args[6],
			       int64_t result, size_t capacity)
{
	struct kymo_copying copying = {
		.args = args,
		.stack_pointer = BASE + 64,
		.result = result,
		.read = read_it,
		.context = memory,
		.bytes = test_malloc(capacity + 1),
		.capacity = capacity,
	};

	kymo_copies_make(&copying, what, 1);
	assert_true(copying.size <= capacity);
	return (struct kymo_copies){ copying.bytes, copying.size };
}

/* `n` bytes at `address` are known, and the next is not. */
static void check_known(struct kymo_copies copies, const struct memory *memory, uint64_t address, size_t n)
{
	static uint8_t out[PAGES * PAGE + 1];

	assert_int_equal(kymo_copies_read(&copies, 1, address, out, n + 1), n);
	assert_memory_equal(out, memory->bytes + (address - BASE), n);
}

static void check_copy(struct memory *memory, const struct kymo_copy *what, const uint64_t args[6], int64_t result,
		       uint64_t address, size_t n)
{
	const struct kymo_copies copies = copy(memory, what, args, result, ROOM);

	check_known(copies, memory, address, n);
	test_free((void *)copies.bytes);
}

static void bytes_are_counted_by_arguments_and_results(void **state)
{
	struct memory *memory = create_memory();
	const uint64_t args[6] = { 7, BASE + 100, 40, BASE + 200 };

	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 1, .size = 16 }, args, 0, BASE + 100, 16);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 1, .times = 3, .size = 1, .max = 32 }, args, 0,
		   BASE + 100, 32);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 1, .times = 1, .size = 8, .max = 4096 }, args,
		   0, BASE + 100, 56);
	check_copy(memory,
		   &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 1, .times = KYMO_COPY_RESULT, .size = 1, .max = 4096 },
		   args, 5, BASE + 100, 5);
	check_copy(memory,
		   &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 1, .times = KYMO_COPY_RESULT, .size = 1, .max = 4096 },
		   args, -14, BASE + 100, 0);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = KYMO_COPY_STACK, .offset = 8, .size = 8 }, args,
		   0, BASE + 72, 8);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 0, .size = 8 }, args, 0, BASE, 0);
	memcpy(memory->bytes + 208, &args[1], 8);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 3, .is_pointer = true, .offset = 8, .size = 4 },
		   args, 0, BASE + 100, 4);
	test_free(memory);
}

static void what_is_not_there_is_left_out(void **state)
{
	struct memory *memory = create_memory();
	const uint64_t end = BASE + sizeof(memory->bytes), args[6] = { end - PAGE - 10, end - 3, end, UINT64_MAX - 2 };

	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 0, .size = 8192 }, args, 0, args[0], PAGE + 10);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_STRING, .arg = 0, .max = 4098 }, args, 0, args[0], 4097);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_STRING, .arg = 1, .max = 4098 }, args, 0, args[1], 3);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 2, .size = 16 }, args, 0, BASE, 0);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_BYTES, .arg = 3, .size = 16 }, args, 0, BASE, 0);
	check_copy(memory, &(struct kymo_copy){ KYMO_COPY_STRING, .arg = 3, .max = 100 }, args, 0, BASE, 0);
	test_free(memory);
}

static void strings_end_with_their_nul_or_are_cut(void **state)
{
	static const size_t lengths[] = { 0, 1, 31, 255, 256, 257, 600, 4000 };
	struct memory *memory = create_memory();

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (size_t offset = 0; offset < 300; offset += 37) {
			const uint64_t args[6] = { BASE + PAGE - offset };

			memory->bytes[PAGE - offset + lengths[i]] = 0;
			check_copy(memory, &(struct kymo_copy){ KYMO_COPY_STRING, .max = 4098 }, args, 0, args[0],
				   lengths[i] + 1);
			check_copy(memory, &(struct kymo_copy){ KYMO_COPY_STRING, .max = 34 }, args, 0, args[0],
				   lengths[i] < 33 ? lengths[i] + 1 : 33);
			memory->bytes[PAGE - offset + lengths[i]] = 'm';
		}
	test_free(memory);
}

/* At BASE: two buffers, of 10 bytes and of many, one of which can't be read, and one more. */
static void fill_vector(struct memory *memory, size_t at)
{
	const uint64_t vector[] = { BASE + 1000, 10, BASE + 2000, 5000, 0, 8, BASE + 3000, 1 };

	memcpy(memory->bytes + at, vector, sizeof(vector));
}

static void vectors_messages_and_lists_lead_to_more(void **state)
{
	struct memory *memory = create_memory();
	const uint64_t args[6] = { 3, BASE, 4, BASE + 500, 1 },
		       message[7] = { BASE + 4000, 16, BASE, 4, BASE + 5000, 20, 0 },
		       list[] = { BASE + 6000, BASE + 6100, 0 };
	struct kymo_copies copies;

	fill_vector(memory, 0);
	copies = copy(memory, &(struct kymo_copy){ KYMO_COPY_VECTOR, .arg = 1, .times = 3, .max = 32 }, args, 0, ROOM);
	check_known(copies, memory, BASE, 64);
	check_known(copies, memory, BASE + 1000, 10);
	check_known(copies, memory, BASE + 2000, 32);
	check_known(copies, memory, BASE + 3000, 1);
	test_free((void *)copies.bytes);

	memcpy(memory->bytes + 500, message, sizeof(message));
	copies = copy(memory, &(struct kymo_copy){ KYMO_COPY_MESSAGE, .arg = 3, .max = 32 }, args, 0, ROOM);
	check_known(copies, memory, BASE + 500, 56);
	check_known(copies, memory, BASE + 4000, 16);
	check_known(copies, memory, BASE + 5000, 20);
	check_known(copies, memory, BASE + 2000, 32);
	test_free((void *)copies.bytes);

	memcpy(memory->bytes + 500, list, sizeof(list));
	memory->bytes[6003] = memory->bytes[6105] = 0;
	copies = copy(memory, &(struct kymo_copy){ KYMO_COPY_STRINGS, .arg = 3, .max = 34 }, args, 0, ROOM);
	check_known(copies, memory, BASE + 500, 24);
	check_known(copies, memory, BASE + 6000, 4);
	check_known(copies, memory, BASE + 6100, 6);
	test_free((void *)copies.bytes);
	test_free(memory);
}

/* Whatever counts and addresses the program gives: as many reads as its bounds allow, and nothing beyond the room. */
static void there_is_never_more_than_there_is_room_for(void **state)
{
	static const struct kymo_copy all[] = {
		{ KYMO_COPY_BYTES, .arg = 1, .times = 3, .size = 1, .max = 16384 },
		{ KYMO_COPY_STRING, .arg = 1, .max = 4098 },
		{ KYMO_COPY_VECTOR, .arg = 1, .times = 3, .max = 4096 },
		{ KYMO_COPY_MESSAGE, .arg = 1, .max = 4096 },
		{ KYMO_COPY_STRINGS, .arg = 1, .max = 4098 },
	};
	struct memory *memory = create_memory();
	const uint64_t args[6] = { 3, BASE, UINT64_MAX };

	for (size_t i = 0; i < sizeof(memory->bytes); i += 8)
		memcpy(memory->bytes + i, &(uint64_t){ BASE + i / 2 }, 8);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (size_t room = 0; room < 9000; room += 1 + room / 16) {
			const struct kymo_copies copies = copy(memory, &all[i], args, 1, room);

			memory->n_reads = 0;
			test_free((void *)copies.bytes);
			test_free((void *)copy(memory, &all[i], args, 1, ROOM).bytes);
			assert_true(memory->n_reads < 1000);
		}
	test_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_copied_is_read_from_any_byte_on),
		cmocka_unit_test(two_areas_complete_each_other),
		cmocka_unit_test(damaged_copies_end_where_they_lie),
		cmocka_unit_test(bytes_are_counted_by_arguments_and_results),
		cmocka_unit_test(what_is_not_there_is_left_out),
		cmocka_unit_test(strings_end_with_their_nul_or_are_cut),
		cmocka_unit_test(vectors_messages_and_lists_lead_to_more),
		cmocka_unit_test(there_is_never_more_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
