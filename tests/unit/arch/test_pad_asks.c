/*
 * Pads that ask the kernel: for the thread's name and for the time. What it answers is in records and in filters, a
 * process that may make no call has faults, and the program sees nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <time.h>

#include "last.h"
#include "pad_checks.h"

#define RDI 7
#define FIRST_BYTES 0x2d72656b726f77 /* "worker-" */

static const struct kymo_form name = { .n = 1, .ops = { { .code = KYMO_FORM_ASK, .value = KYMO_FORM_NAME } } };
static const struct kymo_form now = { .n = 1, .ops = { { .code = KYMO_FORM_ASK, .value = KYMO_FORM_CLOCK } } };
static const struct kymo_form fixed = { .n = 1, .ops = { { .code = KYMO_FORM_TEXT } }, .text = "fixed" };
static const struct kymo_form at_rdi = { .n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI } } };

/* now + *(u64 *)name + *(u64 *)(name + 8): what one answer is changes no other one. */
static const struct kymo_form all = { .n = 9,
				      .ops = { { .code = KYMO_FORM_ASK, .value = KYMO_FORM_NAME },
					       { .code = KYMO_FORM_LOAD, .size = 8 },
					       { .code = KYMO_FORM_ASK, .value = KYMO_FORM_CLOCK },
					       { .code = KYMO_FORM_ADD },
					       { .code = KYMO_FORM_ASK, .value = KYMO_FORM_NAME_AGAIN },
					       { .code = KYMO_FORM_VALUE, .value = 8 },
					       { .code = KYMO_FORM_ADD },
					       { .code = KYMO_FORM_LOAD, .size = 8 },
					       { .code = KYMO_FORM_ADD } } };

static const struct kymo_fetch args[] = {
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &name, .limit = KYMO_FORM_NAME_SIZE },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &now },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = 20 },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &all },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &name, .limit = KYMO_FORM_NAME_SIZE },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &fixed, .limit = KYMO_FORM_TEXT_MAX },
};
static const struct kymo_pad_event plain = { .id = 1, .args = args, .n_args = 6 };

static void world_begin(struct world *world, struct last *last, enum kind kind, uint64_t reader)
{
	memset(last, 0, sizeof(*last));
	world_init(world, kind, roomy);
	world->on_record = keep;
	world->data = last;
	world->varying[1] = &plain;
	memcpy(world->live + KYMO_PAD_LIVE_READER, &reader, sizeof(reader));
}

static uint64_t clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void hit(struct world *world, struct last *last, const struct site *site, uint8_t *stack)
{
	static const char *const text = "text";
	struct registers in;

	last->n = 0;
	randomise(&in, 3, stack);
	in.r[RDI] = (uint64_t)text;
	enter_unseen(site, &in);
	world_read_all(world);
	world_forget(world);
}

static uint64_t word(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void check_answers(const struct last *last, const char *its_name, uint64_t from, uint64_t to)
{
	const size_t n = strlen(its_name) + 1;
	const uint8_t *at = last->bytes + 1;
	char padded[KYMO_FORM_NAME_SIZE] = "";
	uint64_t parts[2];

	memcpy(padded, its_name, n);
	memcpy(parts, padded, sizeof(parts));
	assert_int_equal(last->n, 1);
	assert_int_equal(last->bytes[0], 0);
	assert_int_equal(last->size, 1 + n + 8 + 5 + 8 + n + 6);
	assert_string_equal(at, its_name);
	assert_in_range(word(at + n), from, to);
	assert_string_equal(at + n + 8, "text");
	assert_in_range(word(at + n + 8 + 5) - parts[0] - parts[1], from, to);
	assert_string_equal(at + n + 8 + 5 + 8, its_name);
	assert_string_equal(at + n + 8 + 5 + 8 + n, "fixed");
}

static void names_and_times_are_those_of_the_kernel(void **state)
{
	static const char *const names[] = { "", "a", "worker-2", "fifteen-letters" };
	uint8_t *stack = stack_create();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, (uint64_t)getpid());
		world_landing(&world, &plain, 1, &site);
		for (size_t i = 0; i < kymo_countof(names); i++) {
			const uint64_t from = clock_now();

			prctl(PR_SET_NAME, names[i]);
			hit(&world, &last, &site, stack);
			check_answers(&last, names[i], from, clock_now());
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* Without arguments that are composed, and where no call may be made. */
static void filters_ask(void **state)
{
	const struct kymo_form is_worker = { .n = 6,
					     .ops = { { .code = KYMO_FORM_ASK, .value = KYMO_FORM_NAME },
						      { .code = KYMO_FORM_LOAD, .size = 8 },
						      { .code = KYMO_FORM_VALUE, .value = 8 },
						      { .code = KYMO_FORM_SHIFT_LEFT, .size = 8 },
						      { .code = KYMO_FORM_VALUE, .value = FIRST_BYTES << 8 },
						      { .code = KYMO_FORM_EQUAL } } };
	const struct kymo_pad_event events[] = { { .id = 2, .args = &first_u64, .n_args = 1, .filter = &is_worker },
						 { .id = 3, .args = &first_u64, .n_args = 1 } };
	uint8_t *stack = stack_create();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		for (int may_ask = 0; may_ask < 2; may_ask++) {
			struct world world;
			struct last last;
			struct site site;

			world_begin(&world, &last, kind, may_ask ? (uint64_t)getpid() : 0);
			world_landing(&world, events, 2, &site);
			prctl(PR_SET_NAME, "worker-1");
			hit(&world, &last, &site, stack);
			assert_int_equal(last.n, 1 + may_ask);
			prctl(PR_SET_NAME, "other");
			hit(&world, &last, &site, stack);
			assert_int_equal(last.n, 1);
			assert_int_equal(last.id, 3);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void answers_are_faults_where_no_call_may_be_made(void **state)
{
	uint8_t *stack = stack_create();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, 0);
		world_landing(&world, &plain, 1, &site);
		hit(&world, &last, &site, stack);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 0x1f);
		assert_int_equal(last.size, 1 + 1 + 8 + 1 + 8 + 1 + 6);
		assert_string_equal(last.bytes + 1 + 1 + 8 + 1 + 8 + 1, "fixed");
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void pass(const struct site *site, uint8_t *stack, uint64_t seed, uint64_t size)
{
	struct registers in;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	fill((uint8_t *)in.r[4] - RED_ZONE, AROUND, seed);
	enter_unseen(site, &in);
}

static void nothing_shows_whatever_way_is_taken(void **state)
{
	const struct kymo_pad_event events[] = { plain, { .id = 2, .args = &first_u64, .n_args = 1, .filter = &all } };
	const uint64_t self = (uint64_t)getpid();
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site, before;

		world_init(&world, kind, tiny);
		memcpy(world.live + KYMO_PAD_LIVE_READER, &self, sizeof(self));
		world.varying[1] = &plain;
		world_landing(&world, events, 2, &site);
		world_put_before(&world, &site, events, 2, &before);
		pass_slow_paths(&world, &before, stack, 40, pass);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_times_are_those_of_the_kernel),
		cmocka_unit_test(filters_ask),
		cmocka_unit_test(answers_are_faults_where_no_call_may_be_made),
		cmocka_unit_test(nothing_shows_whatever_way_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
