/*
 * Pads that copy the stack: they copy the bytes from the stack pointer on, as far as these are certainly readable. The
 * program sees nothing of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "stack_records.h"

#define RBP 5
#define LIMIT 8192

static const struct kymo_fetch with_copy[] = {
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
	{ .kind = KYMO_FETCH_COPY, .type = KYMO_TYPE_BYTES, .limit = LIMIT },
};
static const struct kymo_pad_event one_copy = { .id = 1, .args = with_copy, .n_args = 2 };

/* Enter with this stack pointer, and see that so many bytes were copied. */
static void check_copy(struct world *world, const struct site *site, uint64_t sp, uint64_t bp, uint64_t expected)
{
	struct last *last = world->data;
	struct kymo_wire_stack head;
	struct registers in;
	uint64_t first;
	uint16_t size;

	last->n = 0;
	randomise(&in, sp, (const uint8_t *)(uintptr_t)sp);
	in.flags = flags_of(sp % 128);
	in.r[RSP] = sp;
	in.r[RBP] = bp;
	enter_unseen(site, &in);
	world_read_all(world);
	world_forget(world);
	assert_int_equal(last->n, 1);
	assert_int_equal(last->bytes[0], 0);
	memcpy(&first, last->bytes + 1, sizeof(first));
	assert_int_equal(first, in.r[7]);
	memcpy(&size, last->bytes + 9, sizeof(size));
	memcpy(&head, last->bytes + 11, sizeof(head));
	assert_int_equal(size, sizeof(head) + expected);
	assert_int_equal(last->size, 11 + size);
	assert_int_equal(head.pc, site->address);
	assert_int_equal(head.sp, sp);
	assert_int_equal(head.bp, bp);
	assert_memory_equal(last->bytes + 11 + sizeof(head), (const void *)(uintptr_t)sp, expected);
}

/* Whatever is behind the page: at its end nothing can be read. */
static void unknown_stacks_are_copied_to_the_end_of_the_page(void **state)
{
	static struct last last;
	uint8_t *stack = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE;

	fill(stack, STACK_SIZE, 1);
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		begin(&world, &last, kind, NULL, &one_copy, &site);
		for (uint64_t left = 8; left < 2 * PAGE; left += 8)
			if (left >= 1024 && left <= PAGE)
				check_copy(&world, &site, end - left, left * UINT64_C(0x123456789abcdef), left);
		check_copy(&world, &site, end - 3 * PAGE - 1024, 0, 1024);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void the_initial_stack_is_copied_to_its_end(void **state)
{
	static struct last last;
	uint8_t *stack = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE;

	fill(stack, STACK_SIZE, 2);
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		begin(&world, &last, kind, stack, &one_copy, &site);
		for (uint64_t left = 1024; left < 3 * PAGE; left += 1000)
			check_copy(&world, &site, end - left / 8 * 8, 1, left / 8 * 8 < LIMIT ? left / 8 * 8 : LIMIT);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* The last argument, with bytes, and a limit. */
static void other_copies_are_refused(void **state)
{
	static const struct kymo_fetch wrong[][2] = {
		{ { .kind = KYMO_FETCH_COPY, .type = KYMO_TYPE_BYTES, .limit = 64 },
		  FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7) },
		{ FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		  { .kind = KYMO_FETCH_COPY, .type = KYMO_TYPE_U64, .limit = 64 } },
		{ FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		  { .kind = KYMO_FETCH_COPY, .type = KYMO_TYPE_BYTES, .limit = 0 } },
		{ FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		  { .kind = KYMO_FETCH_COPY, .type = KYMO_TYPE_BYTES, .limit = UINT16_MAX } },
	};

	for (size_t i = 0; i < kymo_countof(wrong); i++)
		check_refused(wrong[i], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_stacks_are_copied_to_the_end_of_the_page),
		cmocka_unit_test(the_initial_stack_is_copied_to_its_end),
		cmocka_unit_test(other_copies_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
