/*
 * What pads promise, by running them: operands in memory and in a module's data are recorded as they are, and what may
 * not be there is a fault bit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pad_checks.h"

#define FRAME 184 /* what a pad takes of the stack */

static uint8_t *filled_stack(void)
{
	uint8_t *stack = stack_create();

	fill(stack, STACK_SIZE, 0);
	return stack;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Registers with which the operand means `target`, whatever is left in the displacement. */
static void aim(struct registers *in, struct kymo_fetch *arg, uint64_t target)
{
	uint64_t far = target + mix(target) % 100000 - 50000, sum;

	if (arg->base == arg->index && arg->base >= 0) {
		in->r[arg->base] = far / (1u + arg->scale);
	} else if (arg->base == RSP) {
		if (arg->index >= 0)
			in->r[arg->index] = mix(far) % 2000 - 1000;
	} else if (arg->base >= 0) {
		if (arg->index >= 0)
			in->r[arg->index] = mix(far + 1) % 1000000;
		in->r[arg->base] = far - (arg->index >= 0 ? in->r[arg->index] * arg->scale : 0);
	} else if (arg->index >= 0) {
		in->r[arg->index] = far / arg->scale;
	}
	sum = (arg->base >= 0 ? in->r[arg->base] : 0) + (arg->index >= 0 ? in->r[arg->index] * arg->scale : 0);
	arg->value = (int64_t)(target - sum);
	assert_int_equal(arg->value, (int32_t)arg->value);
}

static void check_operand(struct world *world, struct kymo_fetch arg, uint8_t *stack, uint64_t seed)
{
	struct kymo_pad_event event = { .id = 5, .args = &arg, .n_args = 1 };
	unsigned int size = kymo_type_size(arg.type);
	struct registers in, out;
	uint64_t expected = 0, target;
	struct site site;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	target = in.r[RSP] - 128 + mix(seed) % 512;
	memcpy(&expected, (void *)target, size);
	aim(&in, &arg, target);
	world_landing(world, &event, 1, &site);
	enter(&site, &in, &out);
	check_unchanged(&in, &out);
	world_read_all(world);
	assert_int_equal(world->records.n, 1);
	assert_int_equal(world->records.items[0].size, 1 + size);
	assert_int_equal(world->records.items[0].args[0], 0);
	assert_int_equal(value(&world->records.items[0], 1, size), expected);
	world_forget(world);
}

static void an_operand_is_found_by_any_base_index_and_scale(void **state)
{
	uint8_t *stack = filled_stack();
	uint64_t seed = 0;

	for_each_kind(kind)
	{
		for (int base = -1; base < 16; base++) {
			struct world world;

			world_init(&world, kind, roomy);
			for (int index = base < 0 ? 0 : -1; index < 16; index++) {
				for (unsigned int scale = 1; scale <= (index < 0 ? 1 : 8) && index != RSP; scale *= 2) {
					struct kymo_fetch arg =
						OPERAND(KYMO_TYPE_U64, 0, (int8_t)base, (int8_t)index, (uint8_t)scale);

					check_operand(&world, arg, stack, seed++);
				}
			}
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void an_operand_of_any_type_has_its_size(void **state)
{
	uint8_t *stack = filled_stack();

	for_each_kind(kind)
	{
		struct world world;

		world_init(&world, kind, roomy);
		for (unsigned int type = 0; type <= KYMO_TYPE_F64; type++) {
			struct kymo_fetch arg = OPERAND((enum kymo_type)type, 0, 6, 2, 4);

			if (type < KYMO_N_TYPES || kymo_type_is_real((enum kymo_type)type))
				check_operand(&world, arg, stack, type);
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void an_operand_without_registers_is_an_address(void **state)
{
	void *low = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	assert_ptr_not_equal(low, MAP_FAILED);
	for_each_kind(kind)
	{
		const struct kymo_fetch args[] = {
			OPERAND(KYMO_TYPE_U64, (int64_t)low + PAGE + 512, -1, -1, 1),
			OPERAND(KYMO_TYPE_U64, -1, -1, -1, 1),
			OPERAND(KYMO_TYPE_U64, 0, -1, -1, 1),
		};
		struct kymo_pad_event event = { .id = 5, .args = args, .n_args = 3 };
		struct registers in, out;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		randomise(&in, 1, low);
		in.r[RSP] = (uint64_t)low + PAGE + 256;
		memcpy((uint8_t *)low + PAGE + 512, "8 bytes", 8);
		enter(&site, &in, &out);
		check_unchanged(&in, &out);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(world.records.items[0].args[0], 6);
		assert_memory_equal(world.records.items[0].args + 1, "8 bytes", 8);
		assert_int_equal(value(&world.records.items[0], 9, 8), 0);
		assert_int_equal(value(&world.records.items[0], 17, 8), 0);
		world_deinit(&world);
	}
	munmap(low, 2 * PAGE);
}

/* ---- what can't be read for certain ---------------------------------------------------------- */

static const enum kymo_type sizes[] = { KYMO_TYPE_X8, KYMO_TYPE_X16, KYMO_TYPE_X32, KYMO_TYPE_X64 };

/* The four sizes at `address`, with the stack pointer at `sp`; what is readable is `low` up to `end`. */
static void check_readable(struct world *world, const struct site *site, uint8_t *stack, uint64_t sp, uint64_t address,
			   uint64_t low, uint64_t end)
{
	struct registers in, out;
	const struct record *record;

	randomise(&in, address, stack);
	in.r[RSP] = sp;
	in.r[3] = address - 1000; /* 1000(%rbx) */
	enter(site, &in, &out);
	check_unchanged(&in, &out);
	world_read_all(world);
	assert_int_equal(world->records.n, 1);
	record = &world->records.items[0];
	for (unsigned int i = 0, at = 1; i < 4; at += 1u << i++) {
		unsigned int size = 1u << i;
		bool is_fine = address >= low && address < end && end - address >= size;
		uint64_t expected = 0;

		assert_int_equal(record->args[0] >> i & 1, !is_fine);
		if (is_fine)
			memcpy(&expected, (void *)address, size);
		assert_int_equal(value(record, at, size), expected);
	}
	world_forget(world);
}

static void check_around(struct world *world, const struct site *site, uint8_t *stack, uint64_t sp, bool whole)
{
	static const uint64_t anywhere[] = {
		0,
		1,
		7,
		8,
		4095,
		4096,
		UINT64_MAX,
		UINT64_MAX - 7,
		UINT64_MAX - 8,
		UINT64_C(0x8000000000000000),
		UINT64_C(0x7ffffffffffff000),
		UINT64_C(0x00007ffffffffff8),
		UINT64_C(0x0000800000000000),
		UINT64_C(0xffff800000000000),
		UINT64_C(0xffffffffff600000),
	};
	uint64_t end = (uint64_t)stack + STACK_SIZE, low = (sp - FRAME) & ~(uint64_t)(PAGE - 1);
	uint64_t high = whole ? end : (sp | (PAGE - 1)) + 1;
	const uint64_t edges[] = { low, high, end, sp & ~(uint64_t)(PAGE - 1), sp, sp - 128, sp - FRAME };

	for (size_t i = 0; i < kymo_countof(anywhere); i++)
		check_readable(world, site, stack, sp, anywhere[i], low, high);
	for (size_t i = 0; i < kymo_countof(edges); i++) {
		for (int64_t k = -9; k <= 9; k++) {
			uint64_t address = edges[i] + (uint64_t)k;

			/* what the pad itself writes while it runs does not matter */
			if (address + 8 > sp - 128 || address < sp - FRAME - 16)
				check_readable(world, site, stack, sp, address, low, high);
		}
	}
	/* readable, but not certainly */
	check_readable(world, site, stack, sp, (uint64_t)world->live, low, high);
	check_readable(world, site, stack, sp, low - PAGE, low, high);
}

/* As in a thread whose stack was mapped by itself, with a guard page behind; and in the first thread. */
static void an_operand_that_may_not_be_there_is_a_fault_bit(void **state)
{
	static const uint64_t below[] = { 8,    12,       64,   128,      129,        183,        184,          185,
					  2048, PAGE - 1, PAGE, PAGE + 4, PAGE + 128, PAGE + 184, 3 * PAGE + 20 };
	struct kymo_fetch args[4];
	uint8_t *stack = filled_stack();

	for (unsigned int i = 0; i < 4; i++)
		args[i] = (struct kymo_fetch)OPERAND(sizes[i], 1000, 3, -1, 1);
	for_each_kind(kind)
	{
		for (unsigned int whole = 0; whole < 3; whole++) {
			struct kymo_pad_event event = { .id = 9, .args = args, .n_args = 4 };
			struct world world;
			struct site site;

			world_init(&world, kind, roomy);
			if (whole) { /* of this thread, or another's */
				world.env.stack_low = (uint64_t)stack + (whole == 2 ? UINT64_C(1) << 40 : 0);
				world.env.stack_high = world.env.stack_low + STACK_SIZE;
			}
			world_landing(&world, &event, 1, &site);
			for (size_t i = 0; i < kymo_countof(below); i++)
				check_around(&world, &site, stack, (uint64_t)stack + STACK_SIZE - below[i], whole == 1);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void the_red_zone_is_readable_also_on_the_page_below(void **state)
{
	struct kymo_fetch args[8];
	uint8_t *stack = filled_stack();

	for (unsigned int i = 0; i < 8; i++)
		args[i] = (struct kymo_fetch)OPERAND(KYMO_TYPE_X64, -(int64_t)(8 + 17 * i), RSP, -1, 1);
	args[7].value = -128;
	for_each_kind(kind)
	{
		struct kymo_pad_event event = { .id = 9, .args = args, .n_args = 8 };
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		for (uint64_t over = 0; over <= 192; over++) {
			struct registers in, out;

			randomise(&in, over, stack);
			in.r[RSP] = (uint64_t)stack + 8 * PAGE + over;
			enter(&site, &in, &out);
			world_read_all(&world);
			assert_int_equal(world.records.n, 1);
			assert_int_equal(world.records.items[0].args[0], 0);
			for (unsigned int i = 0; i < 8; i++)
				assert_memory_equal(world.records.items[0].args + 1 + 8 * i,
						    (uint8_t *)in.r[RSP] + args[i].value, 8);
			world_forget(&world);
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- the data of a module -------------------------------------------------------------------- */

static uint8_t globals[64];

static void a_global_is_recorded_in_every_type(void **state)
{
	static const uint64_t biases[] = { 0, 0x1000, 0x555500000000, UINT64_C(0) - 0x123000 };

	fill(globals, sizeof(globals), 1);
	for_each_kind(kind)
	{
		for (size_t b = 0; b < kymo_countof(biases); b++) {
			struct kymo_fetch args[KYMO_N_TYPES + 1];
			struct kymo_pad_event events[] = {
				{ .id = 300, .args = args, .n_args = 8 },
				{ .id = 301, .args = args + 8, .n_args = KYMO_N_TYPES + 1 - 8 }
			};
			uint8_t *stack = stack_create();
			struct world world;
			struct site site;

			world_init(&world, kind, roomy);
			world.bias = biases[b];
			for (unsigned int t = 0; t <= KYMO_N_TYPES; t++)
				args[t] = (struct kymo_fetch)FETCH(KYMO_FETCH_GLOBAL, (enum kymo_type)t,
								   (int64_t)((uint64_t)globals + 3 * t - biases[b]));
			args[KYMO_N_TYPES].type = KYMO_TYPE_F64;
			assert_false(kymo_pad_has_faults(args, 8));
			world_landing(&world, events, 2, &site);
			sees_nothing(&site, stack, 5);
			world_read_all(&world);
			assert_int_equal(world.records.n, 2);
			for (unsigned int t = 0, at = 0; t <= KYMO_N_TYPES; t++) {
				unsigned int size = kymo_type_size(args[t].type);

				at = t == 8 ? 0 : at;
				assert_memory_equal(world.records.items[t / 8].args + at, globals + 3 * t, size);
				at += size;
				assert_true(t % 8 != 7 || world.records.items[t / 8].size == at);
			}
			world_deinit(&world);
			stack_destroy(stack);
		}
	}
}

/* Not a byte more: it may be the last of its mapping. */
static void only_the_bytes_of_a_global_are_read(void **state)
{
	uint8_t *stack = stack_create(); /* after it is a page that can't be read */

	memcpy(stack + STACK_SIZE - 8, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	for_each_kind(kind)
	{
		const struct kymo_fetch args[] = {
			FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_U8, (int64_t)stack + STACK_SIZE - 1),
			FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_U16, (int64_t)stack + STACK_SIZE - 2),
			FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_U32, (int64_t)stack + STACK_SIZE - 4),
			FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_U64, (int64_t)stack + STACK_SIZE - 8),
		};
		const struct kymo_pad_event event = { .id = 9, .args = args, .n_args = 4 };
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		sees_nothing(&site, stack, 1);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(world.records.items[0].size, 1 + 2 + 4 + 8);
		assert_memory_equal(world.records.items[0].args,
				    "\x88\x77\x88\x55\x66\x77\x88\x11\x22\x33\x44\x55\x66\x77\x88", 15);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const struct kymo_fetch mixed[] = {
	OPERAND(KYMO_TYPE_U32, 8, RSP, -1, 1),  FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 10),
	OPERAND(KYMO_TYPE_U64, 0, 13, -1, 1),   FETCH(KYMO_FETCH_STACK, KYMO_TYPE_U16, 3),
	OPERAND(KYMO_TYPE_U8, -7, RSP, -1, 1),  FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S32, -9),
	OPERAND(KYMO_TYPE_F64, 24, RSP, -1, 1), FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_X8, 2),
};

static void check_mixed(const struct record *record, const struct registers *in)
{
	uint64_t sp = in->r[RSP];

	assert_int_equal(record->size, 1 + 4 + 8 + 8 + 2 + 1 + 4 + 8 + 1);
	assert_int_equal(record->args[0], 4); /* r13 is anything */
	assert_memory_equal(record->args + 1, (uint8_t *)sp + 8, 4);
	assert_int_equal(value(record, 5, 8), in->r[10]);
	assert_int_equal(value(record, 13, 8), 0);
	assert_memory_equal(record->args + 21, (uint8_t *)sp + 24, 2);
	assert_memory_equal(record->args + 23, (uint8_t *)sp - 7, 1);
	assert_int_equal((int32_t)value(record, 24, 4), -9);
	assert_memory_equal(record->args + 28, (uint8_t *)sp + 24, 8);
	assert_int_equal(value(record, 36, 1), in->r[2] & 0xff);
}

static void operands_are_the_same_from_another_recordings_pad(void **state)
{
	const struct kymo_pad_event events[] = { { .id = 1, .args = mixed, .n_args = 8 },
						 { .id = 2, .args = mixed, .n_args = 8 } };
	uint8_t *stack = filled_stack();

	for_each_kind(kind)
	{
		struct site first, second, third;
		struct world world;

		world_init(&world, kind, roomy);
		world_landing(&world, events, 2, &first);
		world_put_before(&world, &first, events, 1, &second);
		world_put_before(&world, &second, events, 2, &third);
		for (uint64_t i = 0; i < 128; i++) {
			struct registers in, out;

			randomise(&in, i, stack);
			in.flags = flags_of((unsigned int)i);
			enter(&third, &in, &out);
			check_unchanged(&in, &out);
			world_read_all(&world);
			assert_int_equal(world.records.n, 5);
			for (unsigned int k = 0; k < 5; k++)
				check_mixed(&world.records.items[k], &in);
			world_forget(&world);
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void the_program_sees_nothing_of_it(void **state)
{
	const struct kymo_pad_event event = { .id = 1, .args = mixed, .n_args = 8 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		for (unsigned int i = 0; i < 256; i++)
			sees_nothing(&site, stack, i);
		world_read_all(&world);
		assert_int_equal(world.records.n, 256);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* A thread on a stack that it was given, the pad's frame near its end; `f(x)` gives 2 * x + 7. */
static void *call_on_own_stack(void *data)
{
	const struct site *site = data;

	return (void *)(uintptr_t)call_in_thread(site, 4);
}

static void a_thread_that_is_given_its_stack_is_recorded(void **state)
{
	static const struct kymo_fetch args[] = { OPERAND(KYMO_TYPE_X64, 0, RSP, -1, 1),
						  OPERAND(KYMO_TYPE_X64, 2 * STACK_SIZE, RSP, -1, 1) };
	static const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 2 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		pthread_attr_t attr;
		pthread_t thread;
		struct world world;
		struct site site;
		void *result;

		world_init(&world, kind, roomy);
		world_function(&world, &event, 1, &site);
		assert_int_equal(pthread_attr_init(&attr), 0);
		assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_SIZE), 0);
		assert_int_equal(pthread_create(&thread, &attr, call_on_own_stack, &site), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		pthread_attr_destroy(&attr);
		assert_int_equal((uintptr_t)result, 15);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(world.records.items[0].args[0], 2);
		/* the return address, into this program */
		assert_true(value(&world.records.items[0], 1, 8) - (uint64_t)call_on_own_stack + (1 << 20) < 2 << 20);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operand_is_found_by_any_base_index_and_scale),
		cmocka_unit_test(an_operand_of_any_type_has_its_size),
		cmocka_unit_test(an_operand_without_registers_is_an_address),
		cmocka_unit_test(an_operand_that_may_not_be_there_is_a_fault_bit),
		cmocka_unit_test(the_red_zone_is_readable_also_on_the_page_below),
		cmocka_unit_test(a_global_is_recorded_in_every_type),
		cmocka_unit_test(only_the_bytes_of_a_global_are_read),
		cmocka_unit_test(operands_are_the_same_from_another_recordings_pad),
		cmocka_unit_test(the_program_sees_nothing_of_it),
		cmocka_unit_test(a_thread_that_is_given_its_stack_is_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
