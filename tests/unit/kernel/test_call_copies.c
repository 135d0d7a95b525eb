/*
 * The copies of small memory into a sample, as the programs at tracepoints make them: the same code, run here, with the
 * kernel's copy replaced. No copy may write past the room that was taken for the sample: the next record is another
 * processor's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/param.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <cmocka.h>

static const uint8_t *refused_page; /* copies from it fail */

static long read_user(void *to, uint32_t size, const void *from)
{
	if (refused_page && (const uint8_t *)from + size > refused_page)
		return -14;
	memcpy(to, from, size);
	return 0;
}

static long read_user_string(void *to, uint32_t size, const void *from)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	((char *)to)[n] = 0;
	return (long)n + 1;
}

#define bpf_probe_read_user read_user
#define bpf_probe_read_user_str read_user_string
#include "kernel/call_copies.bpf.h"

#include "kernel/call_load.h"

#define GUARD 0xa5

static uint8_t pages[2 * KYMO_PAGE_SIZE] __attribute__((aligned(KYMO_PAGE_SIZE)));

static struct kymo_copy bytes(uint16_t max)
{
	return (struct kymo_copy){ .what = KYMO_COPY_BYTES, .arg = 0, .times = 2, .size = 1, .max = max };
}

/* Copy `n` bytes that begin `before` bytes before the end of a page; check the sample, and what lies after its room.
 */
static void copy_across(uint16_t max, uint16_t n, size_t before)
{
	static uint8_t room[4096] __attribute__((aligned(8)));
	struct kernel_call *sample = (void *)room;
	const struct kymo_copy copy = bytes(max);
	const struct kernel_call_row row = { .n = 1, .copies = { call_load_copy(&copy) } };
	const size_t size = offsetof(struct kernel_call, copies) + (size_t)call_load_room(&copy, 1);
	const uint8_t *from = pages + KYMO_PAGE_SIZE - before;
	uint8_t got[600];
	size_t n_got = 0;
	uint64_t end;

	assert_true(call_load_room(&copy, 1) > 0);
	memset(room, GUARD, sizeof(room));
	memset(sample, 0, offsetof(struct kernel_call, copies));
	sample->words[0] = (uintptr_t)from;
	sample->words[1] = n;
	end = make_small_copies(sample, &row);
	assert_true(end <= size);
	for (uint64_t at = offsetof(struct kernel_call, copies); at < end;) {
		struct kymo_copied piece;

		memcpy(&piece, room + at, sizeof(piece));
		assert_int_equal(piece.address, (uintptr_t)from + n_got);
		memcpy(got + n_got, room + at + KERNEL_CALL_PIECE_HEADER, piece.size);
		n_got += piece.size;
		at = behind(at, piece.size);
	}
	assert_int_equal(sample->is_incomplete, refused_page != NULL);
	if (!refused_page)
		assert_int_equal(n_got, MIN(n, max));
	assert_memory_equal(got, from, n_got);
	for (size_t i = size; i < sizeof(room); i++)
		if (room[i] != GUARD)
			fail_msg("%u of at most %u bytes, %zu before a page's end: byte %zu after the room is written",
				 n, max, before, i - size);
}

static const uint16_t sizes[] = { 1, 16, 17, 24, 31, 32, 33, 34, 40, 64, 65, 100, 128, 144, 256, 390 };

static void copies_across_pages_stay_in_the_room_of_their_sample(void **state)
{
	for (size_t i = 0; i < sizeof(pages); i++)
		pages[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint16_t n = 1; n <= sizes[i]; n++)
			for (size_t before = 0; before <= MIN(n, 70u); before++)
				copy_across(sizes[i], n, before);
}

static void a_copy_whose_second_page_is_not_there_stays_in_the_room_of_its_sample(void **state)
{
	refused_page = pages + KYMO_PAGE_SIZE;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t before = 0; before < MIN(sizes[i], 70u); before++)
			copy_across(sizes[i], sizes[i], before);
	refused_page = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_across_pages_stay_in_the_room_of_their_sample),
		cmocka_unit_test(a_copy_whose_second_page_is_not_there_stays_in_the_room_of_its_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
