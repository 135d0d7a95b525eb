/*
 * Pads that read memory which may not be there: values, strings and blocks are right or a fault, in filters and in
 * arguments.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pad_reads.h"

/* ---- values ---------------------------------------------------------------------------------- */

static void check_value(const struct last *last, const uint8_t *pages, uint64_t address, unsigned int size)
{
	uint64_t expected = 0, got;

	assert_int_equal(last->size, 1 + 8 + 8);
	assert_int_equal(last->bytes[0], is_there(pages, address, size) ? 0 : 2);
	if (is_there(pages, address, size))
		memcpy(&expected, (const void *)address, size);
	memcpy(&got, last->bytes + 1, 8);
	assert_int_equal(got, address);
	memcpy(&got, last->bytes + 9, 8);
	assert_int_equal(got, expected);
}

static void values_are_read_wherever_they_are_or_are_faults(void **state)
{
	static const uint64_t odd[] = { 0,         1, 4095, UINT64_MAX, UINT64_MAX - 7, 0x800000000000, 0x7ffffffffffc,
					1ull << 63 };
	uint8_t *stack = stack_create(), *pages = pages_create();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		for (unsigned int size = 1; size <= 8; size *= 2) {
			const struct kymo_form form = load_of(size);
			const struct kymo_fetch args[] = {
				FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, RDI),
				{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &form },
			};
			const struct kymo_pad_event events[] = { { .id = 1, .args = args, .n_args = 2 } };
			struct world world;
			struct last last;
			struct site site;

			world_begin(&world, &last, kind, roomy);
			world_landing(&world, events, 1, &site);
			for (unsigned int page = 0; page <= 4; page++)
				for (int at = -9; at < 9; at++) {
					const uint64_t address = (uint64_t)pages + page * PAGE + (uint64_t)(int64_t)at;

					if (address < (uint64_t)pages)
						continue;
					hit(&world, &last, &site, stack, address);
					assert_int_equal(last.n, 1);
					check_value(&last, pages, address, size);
				}
			for (size_t i = 0; i < kymo_countof(odd); i++) {
				hit(&world, &last, &site, stack, odd[i]);
				assert_int_equal(last.n, 1);
				check_value(&last, pages, odd[i], size);
			}
			world_deinit(&world);
		}
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* *(u64 *)(*(u64 *)rdi + 8) + *(u32 *)(rdi + 8), and as a filter. */
static void values_are_read_anywhere_in_a_form(void **state)
{
	const struct kymo_form form = { .n = 9,
					.ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
						 { .code = KYMO_FORM_LOAD, .size = 8 },
						 { .code = KYMO_FORM_VALUE, .value = 8 },
						 { .code = KYMO_FORM_ADD },
						 { .code = KYMO_FORM_LOAD, .size = 8 },
						 { .code = KYMO_FORM_REGISTER, .value = RDI },
						 { .code = KYMO_FORM_VALUE, .value = 8 },
						 { .code = KYMO_FORM_ADD },
						 { .code = KYMO_FORM_LOAD, .size = 4 } } };
	struct kymo_form sum = form;
	const struct kymo_fetch arg = { .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &sum };
	const struct kymo_pad_event events[] = { { .id = 1, .args = &arg, .n_args = 1, .filter = &sum },
						 { .id = 2, .args = &first_u64, .n_args = 1, .filter = &sum },
						 { .id = 3, .args = &first_u64, .n_args = 1 } };
	uint8_t *stack = stack_create(), *pages = pages_create();
	uint64_t *words = (void *)(pages + 2 * PAGE);

	sum.ops[sum.n++] = (struct kymo_form_op){ .code = KYMO_FORM_ADD };
	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;
		uint64_t got;

		world_begin(&world, &last, kind, roomy);
		world_landing(&world, events, 3, &site);
		words[0] = (uint64_t)(words + 4);
		words[1] = 7;
		words[5] = 1000;
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 3);
		words[0] = (uint64_t)(pages + PAGE); /* a fault: no record of those that have the filter */
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.id, 3);
		words[0] = (uint64_t)(words + 4);
		words[1] = 0;
		words[5] = 0; /* false */
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 1);
		world_deinit(&world);

		world_begin(&world, &last, kind, roomy);
		world_landing(&world, events, 1, &site);
		words[1] = 7;
		words[5] = 1000;
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 1);
		memcpy(&got, last.bytes + 1, 8);
		assert_int_equal(last.bytes[0], 0);
		assert_int_equal(got, 1007);
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* ---- strings and blocks ---------------------------------------------------------------------- */

/* What a string is to be, with its NUL; its size, or 0: a fault. */
static size_t expected_string(const uint8_t *pages, uint64_t address, unsigned int limit, uint8_t *ret)
{
	size_t n = 0;

	for (; n <= limit; n++) {
		if (!is_there(pages, address + n, 1)) {
			*ret = 0;
			return 0;
		}
		ret[n] = *(const uint8_t *)(address + n);
		if (!ret[n])
			return n + 1;
	}
	memcpy(ret + limit, KYMO_STRING_CUT, sizeof(KYMO_STRING_CUT));
	return limit + sizeof(KYMO_STRING_CUT);
}

static size_t add_string(const uint8_t *pages, uint64_t address, unsigned int limit, uint8_t bit, uint8_t *record,
			 size_t at)
{
	const size_t size = expected_string(pages, address, limit, record + at);

	if (!size)
		record[0] |= bit;
	return at + (size ? size : 1);
}

/* The elements before a hole, and how many they are. */
static size_t add_array(const uint8_t *pages, uint64_t address, unsigned int size, unsigned int n_elements, uint8_t bit,
			uint8_t *record, size_t at)
{
	uint16_t n = 0;

	while (n < n_elements && is_there(pages, address + n * size, size)) {
		memcpy(record + at + 2 + n * size, (const uint8_t *)address + n * size, size);
		n++;
	}
	if (n < n_elements)
		record[0] |= bit;
	memcpy(record + at, &n, 2);
	return at + 2 + n * size;
}

static size_t expected_record(const uint8_t *pages, uint64_t address, uint8_t *record)
{
	uint16_t n = 0;
	size_t at;

	record[0] = 0;
	at = add_string(pages, address, LIMIT, 1, record, 1);
	memcpy(record + at, &address, 8);
	at += 8;
	while (n < 16 && is_there(pages, address + n, 1)) {
		record[at + 2 + n] = *(const uint8_t *)(address + n);
		n++;
	}
	if (n < 16)
		record[0] |= 4;
	memcpy(record + at, &n, 2);
	at = add_string(pages, address, 3, 8, record, at + 2 + n);
	memcpy(record + at, &address, 2);
	at = add_array(pages, address, 8, 3, 32, record, at + 2);
	return add_array(pages, address, 2, 3, 64, record, at);
}

static void strings_and_blocks_are_read_as_far_as_they_are_there(void **state)
{
	uint8_t *stack = stack_create(), *pages = pages_of_texts();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &mixed_event;
		world_landing(&world, &mixed_event, 1, &site);
		for (unsigned int page = 0; page <= 4; page++)
			for (int at = -40; at < 30; at++) {
				const uint64_t address = (uint64_t)pages + page * PAGE + (uint64_t)(int64_t)at;
				uint8_t expected[256];
				size_t size;

				if (address < (uint64_t)pages)
					continue;
				size = expected_record(pages, address, expected);
				hit(&world, &last, &site, stack, address);
				assert_int_equal(last.n, 1);
				assert_int_equal(last.size, size);
				assert_memory_equal(last.bytes, expected, size);
			}
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* Without a system call: what lies in the page of the frame. */
static void the_stack_is_read_by_a_process_that_may_make_no_call(void **state)
{
	uint8_t *stack = stack_create(), *pages = pages_create();
	const uint64_t none = 0;

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct registers in;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		memcpy(world.live + KYMO_PAD_LIVE_READER, &none, sizeof(none));
		world.varying[1] = &mixed_event;
		world_landing(&world, &mixed_event, 1, &site);
		hit(&world, &last, &site, stack, (uint64_t)pages);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 1 | 4 | 8 | 32 | 64);
		assert_int_equal(last.size, 1 + 1 + 8 + 2 + 1 + 2 + 2 + 2);

		randomise(&in, 1, stack);
		in.r[RDI] = in.r[4] + 8;
		memcpy((void *)in.r[RDI], "on the stack", 13);
		last.n = 0;
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 0);
		assert_string_equal(last.bytes + 1, "on the stack");
		assert_string_equal(last.bytes + 1 + 13 + 8 + 2 + 16, "on " KYMO_STRING_CUT);
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* The process is known by a thread that has ended: by an unused id. */
static void a_process_is_read_whose_initial_thread_has_ended(void **state)
{
	const uint64_t nobody = (1 << 22) + 1; /* more than the kernel gives (PID_MAX_LIMIT) */
	uint8_t *stack = stack_create(), *pages = pages_create();
	const struct kymo_form form = load_of(8);
	const struct kymo_fetch arg = { .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &form };
	const struct kymo_pad_event event = { .id = 1, .args = &arg, .n_args = 1 };

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		memcpy(world.live + KYMO_PAD_LIVE_READER, &nobody, sizeof(nobody));
		world_landing(&world, &event, 1, &site);
		hit(&world, &last, &site, stack, (uint64_t)pages);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 0);
		assert_memory_equal(last.bytes + 1, pages, 8);
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void more_than_there_is_room_for_is_refused(void **state)
{
	struct kymo_fetch args[3];
	uint8_t out[16384];
	struct kymo_pad_layout layout;
	const struct kymo_pad_env env = { .guest = 0x10000, .live = 0x20000, .geometry = 0x21000, .n_cpus = 1 };
	const struct kymo_plan plan = { .tactic = KYMO_TACTIC_JUMP,
					.window = 5,
					.n_insns = 1,
					.insn_offset = { 0, 5 },
					.original = { 0x0f, 0x1f, 0x44, 0, 0 } };
	const struct kymo_pad_chain alone = { 0 };
	struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 2 };

	for (size_t i = 0; i < 3; i++)
		args[i] = (struct kymo_fetch){
			.kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = 512
		};
	assert_int_equal(kymo_pad_composed_size(args, 2), 1 + 2 * 516);
	assert_int_equal(kymo_pad_emit(&env, &plan, 0, 0x12000, &event, 1, &alone, out, sizeof(out), &layout), 0);
	event.n_args = 3;
	assert_int_equal(kymo_pad_emit(&env, &plan, 0, 0x12000, &event, 1, &alone, out, sizeof(out), &layout), -EINVAL);
	event.n_args = 1;
	args[0].limit = 513;
	assert_int_equal(kymo_pad_emit(&env, &plan, 0, 0x12000, &event, 1, &alone, out, sizeof(out), &layout), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_wherever_they_are_or_are_faults),
		cmocka_unit_test(values_are_read_anywhere_in_a_form),
		cmocka_unit_test(strings_and_blocks_are_read_as_far_as_they_are_there),
		cmocka_unit_test(the_stack_is_read_by_a_process_that_may_make_no_call),
		cmocka_unit_test(a_process_is_read_whose_initial_thread_has_ended),
		cmocka_unit_test(more_than_there_is_room_for_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
