/*
 * What pads promise, by running them: the program sees nothing of them, and what they record is what was there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "pad_checks.h"

static const struct kymo_fetch every_way[] = {
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_X64, REG_FLAGS),
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U8, 0),
	FETCH(KYMO_FETCH_STACK, KYMO_TYPE_U64, 0),
	FETCH(KYMO_FETCH_STACK, KYMO_TYPE_U64, 255),
	FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S64, -1),
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U16, 11),
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U32, RSP),
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, REG_IP),
};

static void registers_flags_vectors_and_the_red_zone_survive(void **state)
{
	static const struct kymo_pad_event events[] = { { .id = 1, .args = every_way, .n_args = 8 },
							{ .id = 2, .args = every_way + 1, .n_args = 6 } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, events, 2, &site);
		for (unsigned int i = 0; i < 512; i++)
			sees_nothing(&site, stack, i);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1024);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void pass_unseen(const struct site *site, uint8_t *stack, uint64_t seed, uint64_t size)
{
	sees_nothing(site, stack, seed);
}

static void so_they_do_on_every_slow_path(void **state)
{
	static const struct kymo_pad_event event = { .id = 1, .args = every_way, .n_args = 8 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, tiny);
		world_landing(&world, &event, 1, &site);
		pass_slow_paths(&world, &site, stack, 128, pass_unseen);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- what is in a record --------------------------------------------------------------------- */

static void every_register_is_recorded_in_every_type(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct registers in, out;

		world_init(&world, kind, roomy);
		for (int reg = 0; reg <= REG_FLAGS; reg++) {
			struct kymo_fetch args[KYMO_N_TYPES];
			struct kymo_pad_event events[] = {
				{ .id = 300, .args = args, .n_args = 8 },
				{ .id = 301, .args = args + 8, .n_args = KYMO_N_TYPES - 8 }
			};
			struct site site;
			uint64_t expected;

			for (unsigned int t = 0; t < KYMO_N_TYPES; t++)
				args[t] = (struct kymo_fetch)FETCH(KYMO_FETCH_REGISTER, (enum kymo_type)t, reg);
			world_landing(&world, events, 2, &site);
			randomise(&in, (uint64_t)reg + 77, stack);
			in.flags = 0x202 | DF | CF | 0x80;
			enter(&site, &in, &out);
			expected = reg < 16 ? in.r[reg] : reg == REG_IP ? site.address : in.flags;
			world_read_all(&world);
			assert_int_equal(world.records.n, 2);
			for (unsigned int t = 0, at = 0; t < KYMO_N_TYPES; t++) {
				unsigned int size = kymo_type_size((enum kymo_type)t);

				at = t == 8 ? 0 : at;
				assert_int_equal(value(&world.records.items[t / 8], at, size), cut(expected, size));
				at += size;
			}
			assert_int_equal(world.records.items[0].id, 300);
			assert_int_equal(world.records.items[1].id, 301);
			assert_int_equal(world.records.items[1].tid, gettid());
			world_forget(&world);
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void arguments_immediates_and_the_stack_pointer_are_recorded(void **state)
{
	static const struct kymo_fetch args[] = {
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U32, 2),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U16, 3),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U8, 4),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_S64, 5),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_X64, 6),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 7),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_S32, 9),
		FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S8, -2),
		FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S64, INT64_MIN),
		FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_X32, 0xfedcba98),
		FETCH(KYMO_FETCH_STACK_POINTER, KYMO_TYPE_X64, 0),
	};
	struct kymo_pad_event events[] = { { .id = 7, .args = args, .n_args = 8 },
					   { .id = KYMO_EVENT_ID_MAX, .args = args + 8, .n_args = 4 } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		static const unsigned int sizes[] = { 8, 4, 2, 1, 8, 8, 8, 4 }, registers[] = { 7, 6, 2, 1, 8, 9 };
		const struct record *record;
		struct registers in, out;
		struct world world;
		struct site site;
		unsigned int at = 1;

		world_init(&world, kind, roomy);
		events[1].id = 511;
		world_landing(&world, events, 2, &site);
		randomise(&in, 5, stack);
		fill(stack + STACK_SIZE / 2, 512, 0);
		enter(&site, &in, &out);
		world_read_all(&world);
		assert_int_equal(world.records.n, 2);
		record = &world.records.items[0];
		assert_int_equal(record->args[0], 0);
		for (unsigned int i = 0; i < 8; i++, at += sizes[i - 1]) {
			uint64_t expected;

			if (i < 6)
				expected = in.r[registers[i]];
			else
				memcpy(&expected, (uint8_t *)in.r[RSP] + (i == 6 ? 8 : 24), 8);
			assert_int_equal(value(record, at, sizes[i]), cut(expected, sizes[i]));
		}
		assert_int_equal(at, record->size);
		record++;
		assert_int_equal(record->size, 1 + 8 + 4 + 8);
		assert_int_equal(value(record, 0, 1), 0xfe);
		assert_int_equal(value(record, 1, 8), UINT64_C(1) << 63);
		assert_int_equal(value(record, 9, 4), 0xfedcba98);
		assert_int_equal(value(record, 13, 8), in.r[RSP]);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* Stack words at a stack pointer `below` bytes below the end of what can be read. */
static void check_stack(struct world *world, const struct site *site, const struct kymo_fetch *args, uint8_t *end,
			uint64_t below, bool whole)
{
	struct registers in, out;
	const struct record *record;

	randomise(&in, 1, end - STACK_SIZE);
	in.r[RSP] = (uint64_t)end - below;
	enter(site, &in, &out);
	world_read_all(world);
	assert_int_equal(world->records.n, 1);
	record = &world->records.items[0];
	for (unsigned int i = 0; i < 8; i++) {
		uint64_t first = in.r[RSP] + 8u * (uint64_t)args[i].value, last = first + 7, expected = 0;
		bool same_page = (in.r[RSP] & ~(uint64_t)(PAGE - 1)) == (last & ~(uint64_t)(PAGE - 1));
		bool is_fine = same_page || (whole && last < (uint64_t)end);

		assert_int_equal(record->args[0] >> i & 1, !is_fine);
		if (is_fine)
			memcpy(&expected, (void *)first, 8);
		assert_int_equal(value(record, 1 + 8 * i, 8), expected);
	}
	world_forget(world);
}

static void a_stack_word_that_may_not_be_there_is_a_fault_bit(void **state)
{
	static const uint64_t below[] = { 8, 12, 16, 60, 64, 68, 2048, 2052, PAGE, PAGE + 4, PAGE + 8, 3 * PAGE + 20 };
	static const int64_t words[] = { 0, 1, 7, 8, 31, 32, 254, 255 };
	struct kymo_fetch args[8];
	uint8_t *stack = stack_create();

	for (unsigned int i = 0; i < 8; i++)
		args[i] = (struct kymo_fetch)FETCH(KYMO_FETCH_STACK, KYMO_TYPE_X64, words[i]);
	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		for (unsigned int whole = 0; whole < 2; whole++) {
			struct kymo_pad_event event = { .id = 9, .args = args, .n_args = 8 };
			struct world world;
			struct site site;

			world_init(&world, kind, roomy);
			world.env.stack_low = whole ? (uint64_t)stack : 0;
			world.env.stack_high = whole ? (uint64_t)stack + STACK_SIZE : 0;
			world_landing(&world, &event, 1, &site);
			for (size_t i = 0; i < kymo_countof(below); i++)
				check_stack(&world, &site, args, stack + STACK_SIZE, below[i], whole);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void sixteen_events_at_one_site_are_recorded_in_order(void **state)
{
	for_each_kind(kind)
	{
		struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
		struct kymo_fetch args[KYMO_PAD_MAX_EVENTS];
		cpu_set_t before;
		struct world world;
		struct site site;

		for (unsigned int i = 0; i < KYMO_PAD_MAX_EVENTS; i++) {
			args[i] = (struct kymo_fetch)FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_U16, 1000 + i);
			events[i] = (struct kymo_pad_event){ .id = 100 + i, .args = &args[i], .n_args = i % 2 };
		}
		world_init(&world, kind, roomy);
		stay(&before);
		world_function(&world, events, KYMO_PAD_MAX_EVENTS, &site);
		for (unsigned int i = 0; i < 100; i++)
			call(&site, i);
		leave(&before);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1600);
		for (unsigned int i = 0; i < 1600; i++) {
			assert_int_equal(world.records.items[i].id, 100 + i % 16);
			if (i % 2)
				assert_int_equal(value(&world.records.items[i], 0, 2), 1000 + i % 16);
		}
		world_deinit(&world);
	}
}

/* ---- what a function returns ----------------------------------------------------------------- */

static void the_return_value_is_what_is_in_rax(void **state)
{
	static const struct kymo_fetch args[] = {
		FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_X64, 0),
		FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_S32, 0),
		FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_U16, 0),
		FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_X8, 0),
	};
	static const struct kymo_pad_event event = { .id = 31, .args = args, .n_args = 4 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		const struct record *record;
		struct registers in, out;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		randomise(&in, 99, stack);
		enter(&site, &in, &out);
		assert_int_equal(out.r[0], in.r[0]);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		record = &world.records.items[0];
		assert_int_equal(record->size, 1 + 8 + 4 + 2 + 1);
		assert_int_equal(record->args[0], 0);
		assert_int_equal(value(record, 1, 8), in.r[0]);
		assert_int_equal(value(record, 9, 4), cut(in.r[0], 4));
		assert_int_equal(value(record, 13, 2), cut(in.r[0], 2));
		assert_int_equal(value(record, 15, 1), cut(in.r[0], 1));
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void at_a_tail_jump_it_is_a_fault_and_the_rest_is_recorded(void **state)
{
	static const struct kymo_fetch args[] = {
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_X64, 0),  FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_X64, 1),
		FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_U8, 77), FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_S16, 1),
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U32, 7),
	};
	static const struct kymo_pad_event event = { .id = 32, .args = args, .n_args = 5 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		const struct record *record;
		struct registers in, out;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		randomise(&in, 7, stack);
		enter(&site, &in, &out);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		record = &world.records.items[0];
		assert_int_equal(record->size, 1 + 8 + 8 + 1 + 2 + 4);
		assert_int_equal(record->args[0], 1 << 1 | 1 << 3);
		assert_int_equal(value(record, 1, 8), in.r[0]);
		assert_int_equal(value(record, 9, 8), 0);
		assert_int_equal(value(record, 17, 1), 77);
		assert_int_equal(value(record, 18, 2), 0);
		assert_int_equal(value(record, 20, 4), cut(in.r[7], 4));
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* One event has sites of both kinds. */
static void records_of_both_kinds_of_exit_are_laid_out_alike(void **state)
{
	struct kymo_fetch known = FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_U32, 0),
			  unknown = FETCH(KYMO_FETCH_RETVAL, KYMO_TYPE_U32, 1);

	assert_true(kymo_pad_has_faults(&known, 1));
	assert_true(kymo_pad_has_faults(&unknown, 1));
	assert_int_equal(kymo_pad_body_size(&known, 1), 1 + 4);
	assert_int_equal(kymo_pad_body_size(&unknown, 1), 1 + 4);
	assert_int_equal(kymo_pad_body_size(&known, 0), 0);
}

static __thread uint64_t stack_begin;

/* This stack is another thread's, which begins at `begin`; `low` bytes of it are not enough. */
static void set_stack(struct world *world, uint64_t begin, uint64_t low)
{
	const uint64_t all[2] = { UINT64_MAX, UINT64_MAX };
	const uint64_t words[2] = { (uint64_t)&stack_begin - (uint64_t)__builtin_thread_pointer(), low };

	memcpy(world->live + KYMO_PAD_LIVE_STACK_ENOUGH, all, sizeof(all));
	memcpy(world->live + KYMO_PAD_LIVE_THREAD_STACK, words, sizeof(words));
	stack_begin = begin;
}

/* All but the flags, which are dead; the word that is pushed has been there before. */
static void pass(const struct site *site, struct registers *in)
{
	struct registers out;
	uint8_t before[AROUND];

	memcpy((uint8_t *)in->r[RSP] - 8, &in->r[3], 8);
	memcpy(before, (uint8_t *)in->r[RSP] - RED_ZONE, AROUND);
	enter(site, in, &out);
	assert_memory_equal(out.r, in->r, sizeof(out.r));
	assert_memory_equal((uint8_t *)in->r[RSP] - RED_ZONE, before, AROUND);
}

/* By where the stack begins and how much is too little: near its begin nothing is recorded, and each hit is counted. */
static void near_the_end_of_a_threads_stack_nothing_is_recorded(void **state)
{
	static const struct {
		int64_t begin; /* from the stack pointer */
		uint64_t low;
		bool is_low;
	} cases[] = {
		{ 0, 600, true },      { -599, 600, true },         { -600, 600, false },   { 1, 600, false },
		{ -4096, 4608, true }, { -4607, 4608, true },       { -4608, 4608, false }, { -8192, 4608, false },
		{ 4096, 4608, false }, { -512, UINT64_MAX, false }, /* no sum wraps to anything that is used */
	};
	const struct kymo_pad_event *event = &one_event;
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct registers in;
		struct site site, without;
		uint64_t n_low = 0;
		size_t n = 0;

		world_init(&world, kind, roomy);
		world_pushing(&world, event, 1, 8, &site);
		world_pushing(&world, event, 1, 0, &without);
		for (size_t i = 0; i < kymo_countof(cases); i++) {
			randomise(&in, i, stack);
			set_stack(&world, in.r[RSP] + (uint64_t)cases[i].begin, cases[i].low);
			pass(&site, &in);
			n_low += cases[i].is_low;
			n += !cases[i].is_low;
			world_read_all(&world);
			assert_int_equal(world.records.n, n);
			assert_int_equal(world_lost(&world), n_low);
		}
		set_stack(&world, in.r[RSP], 600);
		pass(&without, &in); /* where no word is free nothing is looked at */
		memset(world.live + KYMO_PAD_LIVE_THREAD_STACK, 0, 8);
		pass(&site, &in);
		world_read_all(&world);
		assert_int_equal(world.records.n, n + 2);
		set_stack(&world, in.r[RSP], 600);
		world_state(&world, 0);
		pass(&site, &in);
		assert_int_equal(world_lost(&world), n_low);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_the_end_of_a_threads_stack_nothing_is_recorded),
		cmocka_unit_test(registers_flags_vectors_and_the_red_zone_survive),
		cmocka_unit_test(so_they_do_on_every_slow_path),
		cmocka_unit_test(every_register_is_recorded_in_every_type),
		cmocka_unit_test(arguments_immediates_and_the_stack_pointer_are_recorded),
		cmocka_unit_test(a_stack_word_that_may_not_be_there_is_a_fault_bit),
		cmocka_unit_test(sixteen_events_at_one_site_are_recorded_in_order),
		cmocka_unit_test(the_return_value_is_what_is_in_rax),
		cmocka_unit_test(at_a_tail_jump_it_is_a_fault_and_the_rest_is_recorded),
		cmocka_unit_test(records_of_both_kinds_of_exit_are_laid_out_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
