/* Pads that read strings and blocks of a computed length: no byte more than is wanted, and never more than the limit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "pad_reads.h"

#define RSI 6
#define SHORT 3

/* rsi bytes at rdi */
static const struct kymo_form wanted = { .n = 3,
					 .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
						  { .code = KYMO_FORM_REGISTER, .value = RSI },
						  { .code = KYMO_FORM_WANT } } };

/* As many as the number at rsi says. */
static const struct kymo_form wanted_there = { .n = 4,
					       .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
							{ .code = KYMO_FORM_REGISTER, .value = RSI },
							{ .code = KYMO_FORM_LOAD, .size = 8 },
							{ .code = KYMO_FORM_WANT } } };

#define ARGS(form_) \
	{ \
		{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &(form_), .limit = LIMIT }, \
			FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, RSI), \
			{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_BYTES, .form = &(form_), .limit = LIMIT }, \
			{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &(form_), .limit = SHORT }, \
			FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U16, RDI), \
			{ .kind = KYMO_FETCH_FORM, \
			  .type = KYMO_TYPE_BYTES, \
			  .form = &(form_), \
			  .limit = 8, \
			  .array_of = KYMO_ARRAY_OF(KYMO_TYPE_U16) }, \
	}
#define N_ARGS 6

static const struct kymo_fetch args[N_ARGS] = ARGS(wanted), args_there[N_ARGS] = ARGS(wanted_there);
static const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = N_ARGS };
static const struct kymo_pad_event event_there = { .id = 1, .args = args_there, .n_args = N_ARGS };

static const uint64_t lengths[] = { 0,
				    1,
				    2,
				    3,
				    4,
				    LIMIT - 1,
				    LIMIT,
				    LIMIT + 1,
				    LIMIT + 2,
				    255,
				    0x10000,
				    0x100000000,
				    1ull << 63,
				    UINT64_MAX,
				    -(uint64_t)LIMIT,
				    UINT64_MAX - 0xffff };

/* What is there of the program's memory; NULL: all is. */
static const uint8_t *pages;

static bool has(uint64_t address)
{
	return !pages || is_there(pages, address, 1);
}

/* ---- what a record is to have ---------------------------------------------------------------- */

static size_t put_string(uint64_t address, uint64_t n, unsigned int limit, uint8_t bit, uint8_t *record, size_t at)
{
	size_t i = 0;

	for (; i < n && i <= limit; i++) {
		if (!has(address + i)) {
			record[0] |= bit;
			record[at] = 0;
			return at + 1;
		}
		record[at + i] = *(const uint8_t *)(address + i);
		if (!record[at + i])
			return at + i + 1;
	}
	if (i <= limit) {
		record[at + i] = 0;
		return at + i + 1;
	}
	memcpy(record + at + limit, KYMO_STRING_CUT, sizeof(KYMO_STRING_CUT));
	return at + limit + sizeof(KYMO_STRING_CUT);
}

static size_t put_block(uint64_t address, uint64_t n, unsigned int limit, unsigned int size, uint8_t bit,
			uint8_t *record, size_t at)
{
	const size_t all = n < limit ? n : limit;
	size_t i = 0;
	uint16_t whole;

	while (i < all && has(address + i)) {
		record[at + 2 + i] = *(const uint8_t *)(address + i);
		i++;
	}
	if (i < all)
		record[0] |= bit;
	whole = (uint16_t)(i / size);
	memcpy(record + at, &whole, 2);
	return at + 2 + whole * size;
}

static size_t expect(uint64_t address, uint64_t n, uint64_t rsi, uint8_t *record)
{
	size_t at;

	record[0] = 0;
	at = put_string(address, n, LIMIT, 1, record, 1);
	memcpy(record + at, &rsi, 8);
	at = put_block(address, n, LIMIT, 1, 4, record, at + 8);
	at = put_string(address, n, SHORT, 8, record, at);
	memcpy(record + at, &address, 2);
	return put_block(address, n, 8, 2, 32, record, at + 2);
}

/* ---- hits ------------------------------------------------------------------------------------ */

static void hit_with(struct world *world, struct last *last, const struct site *site, uint8_t *stack, uint64_t address,
		     uint64_t n)
{
	struct registers in;

	last->n = 0;
	randomise(&in, address + n, stack);
	in.flags = flags_of((address + n) % 128);
	in.r[RDI] = address;
	in.r[RSI] = n;
	fill((uint8_t *)in.r[RSP] - RED_ZONE, RED_ZONE, n);
	enter_unseen(site, &in);
	world_read_all(world);
	world_forget(world);
	assert_int_equal(last->n, 1);
}

static void check(const struct last *last, uint64_t address, uint64_t n, uint64_t rsi)
{
	uint8_t expected[256];
	const size_t size = expect(address, n, rsi, expected);

	if (last->size != size || memcmp(last->bytes, expected, size) != 0)
		print_message("%#llx bytes at %#llx\n", (unsigned long long)n, (unsigned long long)address);
	assert_int_equal(last->size, size);
	assert_memory_equal(last->bytes, expected, size);
}

static void check_all_lengths(struct world *world, struct last *last, const struct site *site, uint8_t *stack,
			      uint64_t address)
{
	for (size_t i = 0; i < kymo_countof(lengths); i++) {
		hit_with(world, last, site, stack, address, lengths[i]);
		check(last, address, lengths[i], lengths[i]);
	}
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void as_much_is_read_as_is_wanted(void **state)
{
	uint8_t *stack = stack_create(), *made = pages_of_texts();

	pages = made;
	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &event;
		world_landing(&world, &event, 1, &site);
		for (unsigned int page = 0; page <= 4; page++)
			for (int at = -30; at < 8; at++)
				if (page || at >= 0)
					check_all_lengths(&world, &last, &site, stack,
							  (uint64_t)pages + page * PAGE + (uint64_t)(int64_t)at);
		check_all_lengths(&world, &last, &site, stack, 0);
		check_all_lengths(&world, &last, &site, stack, UINT64_MAX);
		world_deinit(&world);
	}
	munmap(made, 5 * PAGE);
	stack_destroy(stack);
}

/* By plain loads: in the page of the frame, and on the initial thread's stack; also where no call may be made. */
static void the_stack_is_read_as_far_as_is_wanted(void **state)
{
	uint8_t *stack = stack_create();
	const uint64_t none = 0;

	pages = NULL;
	for_each_kind(kind)
	{
		for (int whole = 0; whole < 2; whole++) {
			const uint64_t high = (uint64_t)stack + STACK_SIZE;
			struct world world;
			struct last last;
			struct site site;

			world_begin(&world, &last, kind, roomy);
			memcpy(world.live + KYMO_PAD_LIVE_READER, &none, sizeof(none));
			world.env.stack_low = (uint64_t)stack;
			world.env.stack_high = whole ? high : 0;
			world.varying[1] = &event;
			world_landing(&world, &event, 1, &site);
			memset(stack + STACK_SIZE / 2, 'c', STACK_SIZE / 2);
			stack[STACK_SIZE / 2 + 1040] = 0;
			for (uint64_t at = 1024; at < 1060; at += 5)
				check_all_lengths(&world, &last, &site, stack, (uint64_t)stack + STACK_SIZE / 2 + at);
			if (whole)
				check_all_lengths(&world, &last, &site, stack, high - LIMIT - 1);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void a_fault_of_the_length_is_one_of_the_value(void **state)
{
	uint8_t *stack = stack_create(), *made = pages_of_texts();
	uint64_t *n = (void *)made;

	pages = made;
	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &event_there;
		world_landing(&world, &event_there, 1, &site);
		for (size_t i = 0; i < kymo_countof(lengths); i++) {
			*n = lengths[i];
			hit_with(&world, &last, &site, stack, (uint64_t)(pages + 2 * PAGE), (uint64_t)n);
			check(&last, (uint64_t)(pages + 2 * PAGE), lengths[i], (uint64_t)n);
		}
		hit_with(&world, &last, &site, stack, (uint64_t)(pages + 2 * PAGE), (uint64_t)(pages + PAGE));
		assert_int_equal(last.bytes[0], 1 | 4 | 8 | 32);
		assert_int_equal(last.size, 1 + 1 + 8 + 2 + 1 + 2 + 2);
		world_deinit(&world);
	}
	munmap(made, 5 * PAGE);
	stack_destroy(stack);
}

static void a_record_has_the_same_room_as_without(void **state)
{
	struct kymo_fetch without = args[0];

	without.form = &at_rdi;
	assert_int_equal(kymo_pad_composed_size(args, 1), kymo_pad_composed_size(&without, 1));
	assert_int_equal(kymo_pad_composed_size(args, 1), 1 + LIMIT + 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_much_is_read_as_is_wanted),
		cmocka_unit_test(the_stack_is_read_as_far_as_is_wanted),
		cmocka_unit_test(a_fault_of_the_length_is_one_of_the_value),
		cmocka_unit_test(a_record_has_the_same_room_as_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
