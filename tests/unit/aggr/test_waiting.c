/* Records of several rings, taken in the order of time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>

#include "aggr/waiting.h"

#define N_MAX 4096

struct model {
	uint64_t stamps[N_MAX], numbers[N_MAX]; /* of what waits, as it came */
	size_t n;
};

static void add(struct kymo_waiting *waiting, struct model *model, uint64_t tsc, uint64_t number)
{
	const struct kymo_call_hit hit = { .tsc = tsc, .stack_pointer = number };

	assert_non_null(kymo_waiting_add(waiting, &hit));
	model->stamps[model->n] = tsc;
	model->numbers[model->n++] = number;
}

/* The number of the first of the oldest ones, which is removed. */
static uint64_t take_from(struct model *model)
{
	size_t oldest = 0;
	uint64_t number;

	for (size_t i = 1; i < model->n; i++)
		if (model->stamps[i] < model->stamps[oldest])
			oldest = i;
	number = model->numbers[oldest];
	model->n--;
	for (size_t i = oldest; i < model->n; i++) {
		model->stamps[i] = model->stamps[i + 1];
		model->numbers[i] = model->numbers[i + 1];
	}
	return number;
}

static void settle(struct kymo_waiting *waiting, struct model *model, uint64_t tsc)
{
	const struct kymo_call_hit *hit;

	assert_true(kymo_waiting_begin(waiting));
	while ((hit = kymo_waiting_oldest(waiting)) != NULL && hit->tsc < tsc) {
		assert_int_equal(hit->stack_pointer, take_from(model));
		kymo_waiting_pop(waiting);
		assert_int_equal(waiting->n, model->n);
	}
	kymo_waiting_end(waiting);
	assert_int_equal(waiting->n, model->n);
	for (size_t i = 0; i < model->n; i++)
		assert_true(model->stamps[i] >= tsc);
}

static void the_oldest_comes_first_and_of_one_stamp_the_one_that_came_first(void **state)
{
	for (unsigned int seed = 1; seed <= 200; seed++) {
		struct kymo_waiting waiting = { .n = 0 };
		static struct model model;
		uint64_t now[8] = { 0 }, number = 0;

		model.n = 0;
		srand(seed);
		for (int round = 0; round < 12; round++) {
			const size_t rings = 1 + (size_t)rand() % 8;

			for (size_t ring = 0; ring < rings; ring++)
				for (int i = rand() % 12; i > 0; i--)
					add(&waiting, &model, now[ring] += (uint64_t)rand() % 4, number++);
			settle(&waiting, &model, (uint64_t)rand() % 64);
		}
		settle(&waiting, &model, UINT64_MAX);
		assert_int_equal(waiting.n, 0);
		assert_int_equal(waiting.runs.n, 0);
		kymo_waiting_deinit(&waiting);
	}
}

static void a_ring_in_order_is_one_run(void **state)
{
	struct kymo_waiting waiting = { .n = 0 };
	static struct model model;

	model.n = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		add(&waiting, &model, i / 2, i);
		if (i % 100 == 99)
			settle(&waiting, &model, i / 4);
		assert_int_equal(waiting.runs.n, 1);
	}
	settle(&waiting, &model, UINT64_MAX);
	kymo_waiting_deinit(&waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_comes_first_and_of_one_stamp_the_one_that_came_first),
		cmocka_unit_test(a_ring_in_order_is_one_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
