/*
 * What pads promise, by running them: threads and signal handlers, between any two instructions, lose nothing and tear
 * nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "breakpoints.h"
#include "pad_checks.h"
#include "ticks.h"

#define N_THREADS 4
#define MAX_CALLS 100000u
#define ENOUGH_SIGNALS 60u
#define IN_HANDLER (UINT64_C(1) << 32)

struct producer {
	const struct site *site;
	pthread_t thread;
	pid_t tid;
	uint32_t n_calls;
	volatile uint32_t n_handled;
	bool is_wrong;
};

static _Thread_local struct producer *producer;

static void on_timer(int signal)
{
	struct producer *me = producer;
	uint64_t x = IN_HANDLER + me->n_handled;

	me->n_handled = me->n_handled + 1;
	if (call_in_thread(me->site, x) != (uint32_t)(2 * x + 7))
		me->is_wrong = true;
}

static void *produce(void *data)
{
	struct producer *me = data;
	timer_t timer;

	producer = me;
	me->tid = gettid();
	if (!ticks_start(200000, &timer)) {
		me->is_wrong = true;
		return NULL;
	}
	while (me->n_calls < MAX_CALLS && me->n_handled < ENOUGH_SIGNALS) {
		uint64_t x = me->n_calls++;

		if (call_in_thread(me->site, x) != (uint32_t)(2 * x + 7) || own_rseq_cs())
			me->is_wrong = true;
		__builtin_ia32_pause();
	}
	ticks_stop(timer);
	return NULL;
}

/* Each number once, of each thread, in and out of the handler. */
static void check_produced(const struct world *world, const struct producer *producers)
{
	uint8_t *seen[N_THREADS][2];
	size_t expected = 0;

	for (unsigned int i = 0; i < N_THREADS; i++) {
		assert_false(producers[i].is_wrong);
		expected += producers[i].n_calls + producers[i].n_handled;
		seen[i][0] = calloc(producers[i].n_calls + 1, 1);
		seen[i][1] = calloc(producers[i].n_handled + 1, 1);
	}
	assert_int_equal(world_lost(world), 0);
	assert_int_equal(world->records.n, expected);
	for (size_t k = 0; k < world->records.n; k++) {
		const struct record *record = &world->records.items[k];
		uint64_t x = value(record, 0, 8);
		unsigned int i = 0;

		while (i < N_THREADS && producers[i].tid != record->tid)
			i++;
		assert_true(i < N_THREADS);
		assert_true((uint32_t)x < (x & IN_HANDLER ? producers[i].n_handled : producers[i].n_calls));
		assert_int_equal(seen[i][!!(x & IN_HANDLER)][(uint32_t)x]++, 0);
	}
	for (unsigned int i = 0; i < N_THREADS; i++) {
		free(seen[i][0]);
		free(seen[i][1]);
	}
}

static void threads_and_their_signal_handlers_lose_and_tear_nothing(void **state)
{
	struct sigaction before;

	ticks_catch(on_timer, &before);
	for_each_kind(kind)
	{
		struct producer producers[N_THREADS] = { 0 };
		struct world world;
		struct site site;
		uint32_t handled = 0;

		world_init(&world, kind, (struct shape){ 2 << 20, 8, false });
		world_function(&world, &one_event, 1, &site);
		for (unsigned int i = 0; i < N_THREADS; i++) {
			producers[i].site = &site;
			assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
		}
		for (unsigned int i = 0; i < N_THREADS; i++) {
			assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
			handled += producers[i].n_handled;
		}
		assert_true(handled > 0);
		world_read_all(&world);
		check_produced(&world, producers);
		world_deinit(&world);
	}
	ticks_release(&before);
}

static void enter_site(struct breakpoints *breakpoints, uint64_t at)
{
	sees_nothing(breakpoints->site, breakpoints->data, at);
}

static bool enter_in_handler(const struct breakpoints *breakpoints)
{
	return call_in_thread(breakpoints->in_handler, 1000) == 2007;
}

static void check_broken(struct breakpoints *breakpoints, uint64_t at, unsigned int hits)
{
	struct world *world = breakpoints->world;
	uint64_t sum = 0;

	assert_int_equal(world->records.n, 1 + hits);
	for (size_t i = 0; i < world->records.n; i++)
		sum += value(&world->records.items[i], 0, 8);
	assert_int_equal(sum, mix(at * 16 + 7) + (hits ? 1000 : 0));
}

static void a_handler_between_any_two_instructions_loses_and_tears_nothing(void **state)
{
	static const struct breakpoint_ops ops = { .enter = enter_site,
						   .handle = enter_in_handler,
						   .check = check_broken };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site, in_handler;

		world_init(&world, kind, roomy);
		world_landing(&world, &one_event, 1, &site);
		world_function(&world, &one_event, 1, &in_handler);
		break_everywhere(&world, &site, &in_handler, &ops, stack);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_and_their_signal_handlers_lose_and_tear_nothing),
		cmocka_unit_test(a_handler_between_any_two_instructions_loses_and_tears_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
