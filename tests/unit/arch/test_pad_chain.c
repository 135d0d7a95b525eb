/*
 * Pads that follow frame pointers: they have the return addresses up to the first frame pointer that leads nowhere, and
 * read nothing that may not be there. The program sees nothing of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "chains.h"

/* Enter with these; the return addresses in the record are as many. */
static void check_chain(struct world *world, const struct site *site, uint64_t sp, uint64_t bp, uint64_t end, size_t n)
{
	struct last *last = world->data;
	struct expected expected;
	struct registers in;
	uint64_t first;

	last->n = 0;
	randomise(&in, sp + bp, (const uint8_t *)(uintptr_t)sp);
	in.flags = flags_of((sp + bp) / 8 % 128);
	in.r[RSP] = sp;
	in.r[RBP] = bp;
	enter_near(site, &in, end);
	world_read_all(world);
	world_forget(world);
	assert_int_equal(last->n, 1);
	assert_int_equal(last->bytes[0], 0);
	memcpy(&first, last->bytes + 1, sizeof(first));
	assert_int_equal(first, in.r[7]);
	expect(&expected, site->address, sp, bp, end, world->varying[1]->args[1].limit);
	assert_int_equal(expected.n, n);
	check_stored(last, 9, &expected);
}

static void chains_of_all_lengths_are_followed_to_the_limit(void **state)
{
	static const uint16_t limits[] = { 0, 1, 2, LIMIT, KYMO_WIRE_CHAIN_MAX };
	static struct last last;
	uint8_t *stack = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE, sp = end - 16384;

	for_each_kind(kind)
	{
		for (size_t k = 0; k < kymo_countof(limits); k++) {
			const struct kymo_fetch args[] = {
				FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
				{ .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_BYTES, .limit = limits[k] },
			};
			const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 2 };
			const size_t limit = limits[k];
			struct world world;
			struct site site;

			begin(&world, &last, kind, stack, &event, &site);
			for (size_t n = limit > 3 ? limit - 3 : 1; n <= limit + 3; n++) {
				fill(stack, STACK_SIZE, n);
				put_chain(sp, n, 16); /* the first frame is at the stack pointer */
				check_chain(&world, &site, sp, sp, end, n < limit ? n : limit);
				put_chain(sp + 40, n, 56);
				check_chain(&world, &site, sp, sp + 40, end, n < limit ? n : limit);
			}
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

/* What frame pointers may not be; from the stack pointer, or from the end of the stack. The page behind that can't be
 * read. */
struct pointer {
	enum { AS_IT_IS, FROM_SP, FROM_END, N_FROM } from;
	uint64_t value;
	size_t n; /* return addresses that it leads to */
};

static const struct pointer pointers[] = {
	{ AS_IT_IS, 0, 0 },
	{ AS_IT_IS, 8, 0 },
	{ AS_IT_IS, UINT64_MAX, 0 },
	{ AS_IT_IS, UINT64_MAX - 7, 0 },
	{ AS_IT_IS, UINT64_MAX - 15, 0 },
	{ AS_IT_IS, INT64_MAX - 7, 0 },
	{ AS_IT_IS, (uint64_t)INT64_MIN, 0 },
	{ AS_IT_IS, UINT64_C(0x7ffffffff000), 0 },
	{ AS_IT_IS, UINT64_C(0xdeadbeefdead0000), 0 },
	{ FROM_SP, (uint64_t)-8, 0 },
	{ FROM_SP, (uint64_t)-16, 0 },
	{ FROM_SP, (uint64_t)-4096, 0 },
	{ FROM_SP, 1, 0 },
	{ FROM_SP, 4, 0 },
	{ FROM_SP, 7, 0 },
	{ FROM_SP, 508, 0 },
	{ FROM_SP, 0, 1 },
	{ FROM_SP, 8, 1 },
	{ FROM_SP, 512, 1 },
	{ FROM_END, (uint64_t)-16, 1 },
	{ FROM_END, (uint64_t)-15, 0 },
	{ FROM_END, (uint64_t)-9, 0 },
	{ FROM_END, (uint64_t)-8, 0 },
	{ FROM_END, (uint64_t)-1, 0 },
	{ FROM_END, 0, 0 },
	{ FROM_END, 8, 0 },
	{ FROM_END, 4096, 0 },
	{ FROM_END, 1 << 20, 0 },
};

static uint64_t pointer_of(const struct pointer *pointer, uint64_t sp, uint64_t end)
{
	return pointer->value + (pointer->from == FROM_SP ? sp : pointer->from == FROM_END ? end : 0);
}

/* In the register, and in the frame that the register leads to: what that has leads on only if it is further up. */
static void check_pointers(struct world *world, const struct site *site, uint64_t sp, uint64_t end)
{
	for (size_t i = 0; i < kymo_countof(pointers); i++) {
		const uint64_t bp = pointer_of(&pointers[i], sp, end), frame = sp + 512;

		if (pointers[i].n)
			put_word(bp, 0);
		check_chain(world, site, sp, bp, end, pointers[i].n);
		put_word(frame, bp);
		check_chain(world, site, sp, frame, end, 1 + (pointers[i].n && bp > frame));
	}
}

static void frame_pointers_that_lead_nowhere_end_the_chain(void **state)
{
	static struct last last;
	uint8_t *stack = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE;

	fill(stack, STACK_SIZE, 1);
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		begin(&world, &last, kind, stack, &one_chain, &site);
		check_pointers(&world, &site, end - 1024, end);
		check_pointers(&world, &site, end - 3 * PAGE - 8, end);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* Those of signal handlers, coroutines: whatever is behind the page. */
static void unknown_stacks_end_with_the_page(void **state)
{
	static struct last last;
	uint8_t *stack = stack_create(), *other = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE;

	fill(stack, STACK_SIZE, 2);
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		for (int is_other_known = 0; is_other_known <= 1; is_other_known++) {
			begin(&world, &last, kind, is_other_known ? other : NULL, &one_chain, &site);
			check_pointers(&world, &site, end - 1024, end);
			check_pointers(&world, &site, end - PAGE - 1024, end - PAGE);
			put_chain(end - PAGE - 160, LIMIT, 32); /* the sixth is in the next page */
			check_chain(&world, &site, end - PAGE - 1024, end - PAGE - 160, end - PAGE, 5);
			check_chain(&world, &site, end - PAGE - 1024, (uint64_t)other + STACK_SIZE - 64, end - PAGE, 0);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
	stack_destroy(other);
}

/* Of the two words at the stack pointer those that are there; it may be anything where the program is assembly. */
static void words_behind_the_end_are_not_read(void **state)
{
	static struct last last;
	uint8_t *stack = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE;

	fill(stack, STACK_SIZE, 3);
	for_each_kind(kind)
	{
		for (int is_known = 0; is_known <= 1; is_known++) {
			struct world world;
			struct site site;

			begin(&world, &last, kind, is_known ? stack : NULL, &one_chain, &site);
			for (uint64_t left = 1; left <= 64; left++)
				check_chain(&world, &site, end - left, 1, end, 0);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

/* The last argument, with bytes, and a limit. */
static void other_chains_are_refused(void **state)
{
	static const struct kymo_fetch wrong[][2] = {
		{ { .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_BYTES, .limit = 4 },
		  FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7) },
		{ FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		  { .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_U64, .limit = 4 } },
		{ FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		  { .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_BYTES, .limit = KYMO_WIRE_CHAIN_MAX + 1 } },
	};

	for (size_t i = 0; i < kymo_countof(wrong); i++)
		check_refused(wrong[i], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_of_all_lengths_are_followed_to_the_limit),
		cmocka_unit_test(frame_pointers_that_lead_nowhere_end_the_chain),
		cmocka_unit_test(unknown_stacks_end_with_the_page),
		cmocka_unit_test(words_behind_the_end_are_not_read),
		cmocka_unit_test(other_chains_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
