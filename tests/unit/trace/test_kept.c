/* The newest packets of a flight recorder, beside a list that is walked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace/kept.h"

#define SIZE 4096u
#define ROUNDS 20000u
#define MOST 700u /* bytes of a packet */

/* What is to be kept: sizes by number; `first` is the oldest, `behind` the next number. */
struct model {
	uint64_t sizes[ROUNDS];
	uint64_t first, behind;
};

static void expect_dropped(const struct kymo_kept_packet *packet, void *data)
{
	struct model *model = data;

	assert_true(model->first < model->behind);
	assert_int_equal(packet->sequence, model->first);
	assert_int_equal(packet->size, model->sizes[model->first]);
	model->first++;
}

/* Byte `i` of packet `number`. */
static uint8_t byte_of(uint64_t number, uint64_t i)
{
	return (uint8_t)(number * 31 + i * 7);
}

static void check(const struct kymo_kept *kept, const struct model *model)
{
	uint64_t number = model->first;

	for (const struct kymo_kept_packet *packet = kymo_kept_first(kept); packet;
	     packet = kymo_kept_next(kept, packet)) {
		const uint8_t *records = kymo_kept_records(packet);

		assert_int_equal(packet->sequence, number);
		assert_int_equal(packet->size, model->sizes[number]);
		for (uint64_t i = 0; i < packet->size; i++)
			assert_int_equal(records[i], byte_of(number, i));
		number++;
	}
	assert_int_equal(number, model->behind);
}

static void push(struct kymo_kept *kept, struct model *model, uint64_t size)
{
	const struct kymo_kept_packet packet = { .stream = 3, .sequence = model->behind, .size = size };
	uint8_t records[SIZE];

	for (uint64_t i = 0; i < size; i++)
		records[i] = byte_of(model->behind, i);
	assert_true(kymo_kept_push(kept, &packet, records, expect_dropped, model));
	model->sizes[model->behind++] = size;
}

static void test_the_newest_are_kept_and_whole(void **state)
{
	struct model *model = calloc(1, sizeof(*model));
	unsigned int seed = 42;
	struct kymo_kept *kept;

	assert_non_null(model);
	assert_null(kymo_kept_create(SIZE, &kept));
	assert_null(kymo_kept_first(kept));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		push(kept, model, (uint64_t)rand_r(&seed) % (i % 100 < 50 ? 20 : MOST));
		check(kept, model);
	}
	assert_true(model->first > 0);
	kymo_kept_destroy(kept);
	free(model);
}

/* As many as there is room for: no more go than have to. */
static void test_none_goes_before_there_is_need(void **state)
{
	const uint64_t whole = sizeof(struct kymo_kept_packet) + 200, n = SIZE / whole;
	struct model *model = calloc(1, sizeof(*model));
	struct kymo_kept *kept;

	assert_non_null(model);
	assert_int_equal(whole % 16, 0);
	assert_null(kymo_kept_create(SIZE, &kept));
	for (uint64_t i = 0; i < n; i++)
		push(kept, model, 200);
	assert_int_equal(model->first, 0);
	for (uint64_t i = 0; i < 3 * n; i++)
		push(kept, model, 200);
	assert_int_equal(model->behind - model->first, n);
	check(kept, model);
	kymo_kept_destroy(kept);
	free(model);
}

static void test_one_that_fills_all_drives_all_out(void **state)
{
	struct model *model = calloc(1, sizeof(*model));
	struct kymo_kept *kept;

	assert_non_null(model);
	assert_null(kymo_kept_create(SIZE, &kept));
	for (unsigned int i = 0; i < 30; i++)
		push(kept, model, 300);
	push(kept, model, SIZE - sizeof(struct kymo_kept_packet));
	assert_int_equal(model->behind - model->first, 1);
	check(kept, model);
	push(kept, model, 0);
	assert_int_equal(model->behind - model->first, 1);
	check(kept, model);
	kymo_kept_destroy(kept);
	free(model);
}

static void test_one_that_has_no_room_changes_nothing(void **state)
{
	static const uint64_t sizes[] = { SIZE - sizeof(struct kymo_kept_packet) + 1, SIZE, UINT64_MAX - 8,
					  UINT64_MAX };
	struct model *model = calloc(1, sizeof(*model));
	struct kymo_kept *kept;

	assert_non_null(model);
	assert_null(kymo_kept_create(SIZE, &kept));
	push(kept, model, 100);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_false(kymo_kept_push(kept, &(struct kymo_kept_packet){ .size = sizes[i] }, NULL, expect_dropped,
					    model));
	check(kept, model);
	kymo_kept_destroy(kept);
	kymo_kept_destroy(NULL);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest_are_kept_and_whole),
		cmocka_unit_test(test_none_goes_before_there_is_need),
		cmocka_unit_test(test_one_that_fills_all_drives_all_out),
		cmocka_unit_test(test_one_that_has_no_room_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
