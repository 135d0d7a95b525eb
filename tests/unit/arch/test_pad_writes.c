/* Pads that write registers: what is written is what the record says, and only where a record is committed and a
 * recorder lives. A function that returns at once gives the value to its caller. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "arch/writes.h"
#include "breakpoints.h"
#include "pad_checks.h"

#define LEASE_TICKS ((uint64_t)1 << 31)
#define WRITTEN 0x1234567890abcdefu
#define CALLS 512u

static struct kymo_form constant(int64_t value)
{
	return (struct kymo_form){ .n = 1, .ops = { { .code = KYMO_FORM_VALUE, .value = value } } };
}

static struct kymo_form of_register(unsigned int reg)
{
	return (struct kymo_form){ .n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = reg } } };
}

static struct kymo_fetch write_to(uint8_t writes, const struct kymo_form *form)
{
	return (struct kymo_fetch){
		.kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .base = -1, .index = -1, .form = form, .writes = writes
	};
}

static uint64_t *lease_of(const struct world *world)
{
	return (uint64_t *)(void *)(world->live + KYMO_PAD_LIVE_LEASE);
}

static void lease(const struct world *world)
{
	*lease_of(world) = tsc() + LEASE_TICKS;
}

/* ---- registers ------------------------------------------------------------------------------- */

static void each_register_gets_its_value(void **state)
{
	const struct kymo_form form = constant((int64_t)WRITTEN);
	uint8_t *stack = stack_create();

	for_each_kind(kind) for (unsigned int reg = 0; reg < 16; reg++) for (unsigned int size = 4; size <= 8;
									     size += 4)
	{
		struct kymo_fetch args[2] = { FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 1),
					      write_to(KYMO_WRITE_OF(reg), &form) };
		const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 2 };
		struct registers in, out;
		struct world world;
		struct site site;

		if (reg == RSP)
			continue;
		args[0].value = reg;
		args[1].type = size == 4 ? KYMO_TYPE_U32 : KYMO_TYPE_U64;
		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		lease(&world);
		randomise(&in, reg, stack);
		in.flags = flags_of(reg * 8 + 1);
		enter(&site, &in, &out);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(value(&world.records.items[0], 0, 1), 0);
		assert_int_equal(value(&world.records.items[0], 1, 8), in.r[reg]);
		assert_int_equal(value(&world.records.items[0], 9, size), cut(WRITTEN, size));
		in.r[reg] = cut(WRITTEN, size);
		check_unchanged(&in, &out);
		assert_memory_equal(out.vectors, in.vectors, sizeof(in.vectors));
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* Values are of what was there before any of the writes. */
static const uint8_t turn_from[] = { 0, 2, 10, 3 }, turn_to[] = { 2, 10, 3, 0 };

static void four_registers_change_places(void **state)
{
	uint8_t *stack = stack_create();
	struct kymo_form forms[4];
	struct kymo_fetch args[4];

	for (size_t i = 0; i < 4; i++) {
		forms[i] = of_register(turn_from[i]);
		args[i] = write_to(KYMO_WRITE_OF(turn_to[i]), &forms[i]);
	}
	for_each_kind(kind)
	{
		const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 4 };
		struct registers in, out;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		lease(&world);
		randomise(&in, 7, stack);
		enter(&site, &in, &out);
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(out.r[turn_to[i]], in.r[turn_from[i]]);
			out.r[turn_to[i]] = in.r[turn_to[i]];
		}
		check_unchanged(&in, &out);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- no lease, no record: nothing is written ------------------------------------------------- */

static void without_a_lease_the_program_sees_nothing(void **state)
{
	const struct kymo_form form = constant(5), back = constant(6);
	const struct kymo_fetch args[] = { FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 3),
					   write_to(KYMO_WRITE_OF(3), &form), write_to(KYMO_WRITE_RETURN, &back) };
	const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 3 };
	uint8_t *stack = stack_create();

	for_each_kind(kind) for (int i = 0; i < 4; i++)
	{
		const uint64_t leases[] = { 0, tsc() - 1, tsc() + (2ull << KYMO_PAD_LEASE_BITS), UINT64_MAX };
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		*lease_of(&world) = leases[i];
		sees_nothing(&site, stack, (uint64_t)i);
		assert_int_equal(*lease_of(&world), 0); /* nor if the clock goes back later */
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(value(&world.records.items[0], 0, 1), 6); /* both were not written */
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* How many of `n` calls have returned at once, by the value. */
static size_t calls_that_return(const struct world *world, const struct site *site, size_t n)
{
	size_t returned = 0;

	for (uint64_t i = 0; i < n; i++) {
		const uint32_t got = call_in_thread(site, i);

		lease(world);
		assert_true(got == 2 * i + 7 || got == 1000000);
		returned += got == 1000000;
	}
	return returned;
}

static void what_is_not_recorded_is_not_written(void **state)
{
	const struct kymo_form form = constant(1000000);
	const struct kymo_fetch args[] = { write_to(KYMO_WRITE_RETURN, &form) };
	const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 1 };

	for_each_kind(kind)
	{
		size_t returned;
		struct world world;
		struct site site;

		world_init(&world, kind, tiny);
		world_function(&world, &event, 1, &site);
		lease(&world);
		returned = calls_that_return(&world, &site, 4 * CALLS);
		assert_true(returned > 0 && world_lost(&world) > 0);
		assert_int_equal(returned + world_lost(&world), 4 * CALLS);
		world_read_all(&world);
		assert_int_equal(world.records.n, returned);
		world_state(&world, 0);
		assert_int_equal(calls_that_return(&world, &site, CALLS), 0);
		world_state(&world, 0x33);
		assert_int_equal(calls_that_return(&world, &site, CALLS), 0);
		set_locks(&world, 0, world.n_rings, 1);
		world_state(&world, KYMO_PAD_LIVE);
		assert_int_equal(calls_that_return(&world, &site, CALLS), 0);
		set_locks(&world, 0, world.n_rings, 0);
		world_state(&world, KYMO_PAD_EARLY);
		assert_true(calls_that_return(&world, &site, 1) == 1);
		world_deinit(&world);
	}
}

static void calls_itself(const struct site *site, uint8_t *stack)
{
	sees_nothing(site, stack, 3);
}

static void a_forked_child_is_not_written(void **state)
{
	const struct kymo_form form = constant(1000000);
	const struct kymo_fetch args[] = { write_to(KYMO_WRITE_OF(3), &form) };
	const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 1 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		lease(&world);
		in_child(&site, stack, calls_itself);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- functions that return ------------------------------------------------------------------- */

static void a_filter_decides_which_calls_return(void **state)
{
	const struct kymo_form form = { .n = 3,
					.ops = { { .code = KYMO_FORM_REGISTER, .value = 7 },
						 { .code = KYMO_FORM_VALUE, .value = 3 },
						 { .code = KYMO_FORM_MULTIPLY } } };
	const struct kymo_form filter = { .n = 3,
					  .ops = { { .code = KYMO_FORM_VALUE, .value = 10 },
						   { .code = KYMO_FORM_REGISTER, .value = 7 },
						   { .code = KYMO_FORM_LESS } } };
	const struct kymo_form text = { .n = 1, .ops = { { .code = KYMO_FORM_TEXT } }, .text = "hello" };
	const struct kymo_fetch args[] = {
		write_to(KYMO_WRITE_RETURN, &form),
		{ .kind = KYMO_FETCH_FORM,
		  .type = KYMO_TYPE_STRING,
		  .base = -1,
		  .index = -1,
		  .form = &text,
		  .limit = 8 },
	};

	for_each_kind(kind) for (size_t n = 1; n <= 2; n++)
	{
		const struct kymo_pad_event events[] = { one_event,
							 { .id = 2, .args = args, .n_args = n, .filter = &filter } };
		struct site site, before;
		struct world world;

		world_init(&world, kind, roomy);
		world_function(&world, events, 2, &site);
		world.varying[2] = n > 1 ? &events[1] : NULL;
		lease(&world);
		for (uint64_t i = 0; i < 100; i++)
			assert_int_equal(call_in_thread(&site, i), i > 10 ? 3 * i : 2 * i + 7);
		world_read_all(&world);
		assert_int_equal(world.records.n, 100 + 89);
		world_forget(&world);
		world_put_before(&world, &site, &one_event, 1, &before); /* as a later recording does */
		for (uint64_t i = 0; i < 100; i++)
			assert_int_equal(call_in_thread(&before, i), i > 10 ? 3 * i : 2 * i + 7);
		world_read_all(&world);
		assert_int_equal(world.records.n, 200 + 89);
		world_deinit(&world);
	}
}

/* ---- signal handlers ------------------------------------------------------------------------- */

static unsigned int n_turned, n_kept;
static bool was_turned;

/* Four registers change places, or all is as it was. */
static void enter_turning(struct breakpoints *breakpoints, uint64_t at)
{
	struct registers in, out;

	lease(breakpoints->world);
	randomise(&in, at, breakpoints->data);
	in.flags = flags_of(at % 128);
	enter(breakpoints->site, &in, &out);
	was_turned = out.r[0] == in.r[3];
	for (size_t i = 0; i < 4 && was_turned; i++) {
		assert_int_equal(out.r[turn_to[i]], in.r[turn_from[i]]);
		out.r[turn_to[i]] = in.r[turn_to[i]];
	}
	check_unchanged(&in, &out);
	n_turned += was_turned;
	n_kept += !was_turned;
}

/* The handler's own call returns at once. Then the lease ends: what has been decided holds. */
static bool end_lease(const struct breakpoints *breakpoints)
{
	uint32_t got;

	lease(breakpoints->world);
	got = call_in_thread(breakpoints->in_handler, 1000);
	*lease_of(breakpoints->world) = 0;
	return got == 3000;
}

static void check_turned(struct breakpoints *breakpoints, uint64_t at, unsigned int hits)
{
	const struct world *world = breakpoints->world;

	assert_int_equal(world->records.n, 1 + hits);
	for (size_t i = 0; i < world->records.n; i++)
		if (world->records.items[i].id == 1)
			assert_int_equal(value(&world->records.items[i], 0, 1), was_turned ? 0 : 0xf);
		else
			assert_int_equal(value(&world->records.items[i], 0, 1), 0);
}

static void a_lease_that_ends_between_any_two_instructions_decides_once(void **state)
{
	static const struct breakpoint_ops ops = { .enter = enter_turning, .handle = end_lease, .check = check_turned };
	const struct kymo_form thrice = { .n = 3,
					  .ops = { { .code = KYMO_FORM_REGISTER, .value = 7 },
						   { .code = KYMO_FORM_VALUE, .value = 3 },
						   { .code = KYMO_FORM_MULTIPLY } } };
	const struct kymo_fetch back = write_to(KYMO_WRITE_RETURN, &thrice);
	const struct kymo_pad_event returning = { .id = 2, .args = &back, .n_args = 1 };
	uint8_t *stack = stack_create();
	struct kymo_form forms[4];
	struct kymo_fetch args[4];

	for (size_t i = 0; i < 4; i++) {
		forms[i] = of_register(turn_from[i]);
		args[i] = write_to(KYMO_WRITE_OF(turn_to[i]), &forms[i]);
	}
	for_each_kind(kind)
	{
		const struct kymo_pad_event turning = { .id = 1, .args = args, .n_args = 4 };
		struct site site, in_handler;
		struct world world;

		n_turned = n_kept = 0;
		world_init(&world, kind, roomy);
		world_landing(&world, &turning, 1, &site);
		world_function(&world, &returning, 1, &in_handler);
		break_everywhere(&world, &site, &in_handler, &ops, stack);
		assert_true(n_turned > 50 && n_kept > 5);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- bad ones -------------------------------------------------------------------------------- */

static int emit(const struct world *world, const struct site *site, const struct kymo_pad_event *events, size_t n,
		uint64_t next)
{
	static uint8_t out[65536] __attribute__((aligned(64)));
	const struct kymo_pad_chain chain = { .next = next };
	struct kymo_pad_layout layout;

	return kymo_pad_emit(&world->env, &site->plan, site->address, site->pad, events, n, &chain, out, sizeof(out),
			     &layout);
}

static int emit_args(const struct world *world, const struct site *site, const struct kymo_fetch *args, size_t n)
{
	const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = n };

	return emit(world, site, &event, 1, 0);
}

static void bad_writes_are_refused(void **state)
{
	static const enum kymo_form_code codes[] = { KYMO_FORM_STACK, KYMO_FORM_RETVAL, KYMO_FORM_CONTEXT,
						     KYMO_FORM_VECTOR };
	const struct kymo_form form = constant(1), other = constant(2);
	const struct kymo_form load = {
		.n = 2, .ops = { { .code = KYMO_FORM_REGISTER, .value = 7 }, { .code = KYMO_FORM_LOAD, .size = 8 } }
	};
	struct kymo_fetch write = write_to(KYMO_WRITE_OF(3), &form),
			  twice[] = { write, write_to(KYMO_WRITE_OF(3), &other) };
	const struct kymo_pad_event writer = { .id = 1, .args = &write, .n_args = 1 }, two[] = { writer, one_event };
	struct world world;
	struct site site;

	world_init(&world, LOCKS, roomy);
	world_function(&world, &one_event, 1, &site);
	assert_int_equal(emit_args(&world, &site, &write, 1), 0);
	assert_int_equal(emit_args(&world, &site, twice, 2), -EINVAL);
	assert_int_equal(emit(&world, &site, two, 2, 0), -EINVAL);
	assert_int_equal(emit(&world, &site, &writer, 1, site.pad), -EINVAL);
	write.writes = KYMO_WRITE_OF(RSP);
	assert_int_equal(emit_args(&world, &site, &write, 1), -EINVAL);
	write.writes = KYMO_WRITE_OF(16);
	assert_int_equal(emit_args(&world, &site, &write, 1), -EINVAL);
	write = write_to(KYMO_WRITE_OF(3), &load);
	assert_int_equal(emit_args(&world, &site, &write, 1), -EINVAL);
	write = write_to(KYMO_WRITE_OF(3), &form);
	write.type = KYMO_TYPE_U8;
	assert_int_equal(emit_args(&world, &site, &write, 1), -EINVAL);
	for (size_t i = 0; i < kymo_countof(codes); i++) {
		const struct kymo_form bad = { .n = 1, .ops = { { .code = (uint8_t)codes[i] } } };

		write = write_to(KYMO_WRITE_OF(3), &bad);
		assert_int_equal(emit_args(&world, &site, &write, 1), -EINVAL);
	}
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_register_gets_its_value),
		cmocka_unit_test(four_registers_change_places),
		cmocka_unit_test(without_a_lease_the_program_sees_nothing),
		cmocka_unit_test(what_is_not_recorded_is_not_written),
		cmocka_unit_test(a_forked_child_is_not_written),
		cmocka_unit_test(a_filter_decides_which_calls_return),
		cmocka_unit_test(a_lease_that_ends_between_any_two_instructions_decides_once),
		cmocka_unit_test(bad_writes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
