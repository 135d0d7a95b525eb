/*
 * What packed records leave out (wire/event.h), by pads that run: threads and stamps are those of the program,
 * whichever thread interrupts another, and after any time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "breakpoints.h"
#include "pad_checks.h"

#define OTHER 777777 /* a thread id */
#define N_THREADS 100
#define N_CALLS 400u
#define COMPACT_TICKS (UINT64_C(1) << KYMO_PACKED_COMPACT_TIME_BITS)

/* As another thread that has got the CPU. */
static uint32_t call_as(int32_t tid, const struct site *site, uint64_t x)
{
	int32_t *own = (int32_t *)((char *)__builtin_thread_pointer() + tid_offset());
	const int32_t before = *own;
	uint32_t result;

	*own = tid;
	result = call_in_thread(site, x);
	*own = before;
	return result;
}

static void wait_for(uint64_t ticks)
{
	const uint64_t since = tsc();

	while (tsc() - since < ticks)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* ---- one thread interrupts another ----------------------------------------------------------- */

/* Records of this thread have odd values, those of the other even ones; sees_nothing() records any. */
enum { OF_OTHER = 1000, OF_OWN = 1001 };

struct interrupted {
	uint8_t *stack;
	int32_t first;       /* whose record comes first in the packet; 0: none does */
	uint64_t ticks;      /* that the other thread has the CPU before it records */
	uint64_t begin, end; /* of the call that is interrupted */
	uint64_t handler_begin, handler_end;
};

static void enter_interrupted(struct breakpoints *breakpoints, uint64_t at)
{
	struct interrupted *data = breakpoints->data;

	if (data->first)
		call_as(data->first, breakpoints->in_handler, data->first == OTHER ? OF_OTHER : OF_OWN);
	data->begin = tsc();
	sees_nothing(breakpoints->site, data->stack, at);
	data->end = tsc();
}

static bool record_as_other(const struct breakpoints *breakpoints)
{
	struct interrupted *data = breakpoints->data;

	if (data->ticks)
		wait_for(data->ticks);
	data->handler_begin = tsc();
	if (call_as(OTHER, breakpoints->in_handler, OF_OTHER) != 2 * OF_OTHER + 7)
		return false;
	data->handler_end = tsc();
	return true;
}

static void check_interrupted(struct breakpoints *breakpoints, uint64_t at, unsigned int hits)
{
	const struct interrupted *data = breakpoints->data;
	const struct world *world = breakpoints->world;
	unsigned int n_within = 0;

	assert_int_equal(world->records.n, 1 + hits + (data->first != 0));
	for (size_t i = 0; i < world->records.n; i++) {
		const struct record *record = &world->records.items[i];
		const uint64_t x = value(record, 0, 8);

		assert_int_equal(record->tid, x == OF_OTHER ? OTHER : gettid());
		if (x == mix(at * 16 + 7)) {
			assert_true(record->stamp >= data->begin && record->stamp <= data->end);
			n_within++;
		} else if (record->stamp >= data->begin) {
			assert_true(record->stamp >= data->handler_begin && record->stamp <= data->handler_end);
		}
	}
	assert_int_equal(n_within, 1);
}

static const struct breakpoint_ops interrupting = { .enter = enter_interrupted,
						    .handle = record_as_other,
						    .check = check_interrupted };

static void interrupt_everywhere(enum kind kind, uint32_t id, struct interrupted *data)
{
	const struct kymo_pad_event event = { .id = id, .args = &first_u64, .n_args = 1 };
	struct world world;
	struct site site, in_handler;
	cpu_set_t before;

	world_init(&world, kind, roomy);
	world_landing(&world, &event, 1, &site);
	world_function(&world, &event, 1, &in_handler);
	stay(&before);
	break_everywhere(&world, &site, &in_handler, &interrupting, data);
	leave(&before);
	world_deinit(&world);
}

static void a_thread_between_any_two_instructions_has_its_own_records(void **state)
{
	const int32_t firsts[] = { 0, gettid(), OTHER };
	struct interrupted data = { .stack = stack_create() };

	for_each_kind(kind)
	{
		for (size_t i = 0; i < kymo_countof(firsts) * 2; i++) {
			data.first = firsts[i / 2];
			interrupt_everywhere(kind, i % 2 ? 1 : 100, &data);
		}
	}
	stack_destroy(data.stack);
}

/* What the interrupted thread has written to the ring, and not committed, says nothing of the time. */
static void a_thread_may_lose_the_cpu_for_long_between_any_two_instructions(void **state)
{
	struct interrupted data = { .stack = stack_create(), .first = gettid(), .ticks = COMPACT_TICKS * 2 / 3 };

	if (is_possible(SEQUENCES))
		interrupt_everywhere(SEQUENCES, 1, &data);
	stack_destroy(data.stack);
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct caller {
	const struct site *site;
	pthread_t thread;
	bool is_wrong;
};

static void *call_often(void *data)
{
	struct caller *caller = data;
	const uint64_t tid = (uint64_t)gettid();

	for (unsigned int i = 0; i < N_CALLS; i++) {
		uint64_t x = (uint64_t)i << 32 | tid;

		caller->is_wrong |= call_in_thread(caller->site, x) != (uint32_t)(2 * x + 7);
		if (i % 7 == 0)
			sched_yield();
	}
	return NULL;
}

static void a_hundred_threads_are_told_apart(void **state)
{
	for_each_kind(kind)
	{
		struct caller callers[N_THREADS] = { 0 };
		struct world world;
		struct site site;

		world_init(&world, kind, (struct shape){ 1 << 20, 8, false });
		world_function(&world, &one_event, 1, &site);
		for (unsigned int i = 0; i < N_THREADS; i++) {
			callers[i].site = &site;
			assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
		}
		for (unsigned int i = 0; i < N_THREADS; i++) {
			assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
			assert_false(callers[i].is_wrong);
		}
		world_read_all(&world);
		assert_int_equal(world_lost(&world), 0);
		assert_int_equal(world.records.n, N_THREADS * N_CALLS);
		for (size_t i = 0; i < world.records.n; i++)
			assert_int_equal((uint32_t)value(&world.records.items[i], 0, 8), world.records.items[i].tid);
		world_deinit(&world);
	}
}

/* ---- time ------------------------------------------------------------------------------------ */

static void stamps_are_those_of_the_program_after_any_time(void **state)
{
	static const uint64_t ticks[] = { 0,
					  1000,
					  COMPACT_TICKS / 2,
					  COMPACT_TICKS * 3 / 4,
					  COMPACT_TICKS,
					  COMPACT_TICKS * 2,
					  COMPACT_TICKS * 5 / 2 };

	for_each_kind(kind)
	{
		for (uint32_t id = 1; id < 200; id += 150) {
			const struct kymo_pad_event event = { .id = id, .args = &first_u64, .n_args = 1 };
			uint64_t begin[kymo_countof(ticks)], end[kymo_countof(ticks)];
			cpu_set_t before;
			struct world world;
			struct site site;

			world_init(&world, kind, roomy);
			world_function(&world, &event, 1, &site);
			stay(&before);
			for (size_t i = 0; i < kymo_countof(ticks); i++) {
				wait_for(ticks[i]);
				begin[i] = tsc();
				call(&site, i);
				end[i] = tsc();
			}
			leave(&before);
			world_read_all(&world);
			assert_int_equal(world.records.n, kymo_countof(ticks));
			for (size_t i = 0; i < world.records.n; i++) {
				assert_true(world.records.items[i].stamp >= begin[i]);
				assert_true(world.records.items[i].stamp <= end[i]);
			}
			assert_true(id > 30 ? world.n_threads == 1 : world.n_threads >= 4);
			world_deinit(&world);
		}
	}
}

/* Each of these words of a ring makes the next record come with its thread. */
static void a_thread_is_told_where_the_ring_does_not_say_so(void **state)
{
	for_each_kind(kind)
	{
		struct kymo_wire_ring *ring;
		cpu_set_t before;
		struct world world;
		struct site site;
		uint64_t cur;

		world_init(&world, kind, roomy);
		world_function(&world, &one_event, 1, &site);
		ring = world_ring(&world, stay(&before));
		call(&site, 0);
		for (unsigned int i = 0; i < 5; i++) {
			cur = ring->cur;
			call(&site, 1);
			assert_int_equal(ring->cur - cur, KYMO_PACKED_COMPACT_SIZE + 8);
			ring->thread_tsc -= i == 0 ? COMPACT_TICKS : 0;
			ring->thread_tsc += i == 1 ? COMPACT_TICKS : 0;
			ring->thread += i == 2;
			ring->thread_at = i == 3 ? ring->cur : i == 4 ? KYMO_WIRE_NO_THREAD : ring->thread_at;
			cur = ring->cur;
			call(&site, 2);
			assert_int_equal(ring->cur - cur, KYMO_PACKED_THREAD_SIZE + KYMO_PACKED_COMPACT_SIZE + 8);
			assert_int_equal(ring->thread, gettid());
			assert_int_equal(ring->thread_at, cur);
		}
		leave(&before);
		world_deinit(&world);
	}
}

static void ids_up_to_30_have_short_headers(void **state)
{
	static const struct {
		uint32_t id, header;
	} cases[] = { { 1, 4 }, { 30, 4 }, { 31, 8 }, { 32, 8 }, { 511, 8 } };

	for_each_kind(kind)
	{
		for (size_t i = 0; i < kymo_countof(cases); i++) {
			const struct kymo_pad_event event = { .id = cases[i].id, .args = &first_u64, .n_args = 1 };
			struct kymo_wire_ring *ring;
			cpu_set_t before;
			struct world world;
			struct site site;
			uint64_t cur;

			world_init(&world, kind, roomy);
			world_function(&world, &event, 1, &site);
			ring = world_ring(&world, stay(&before));
			call(&site, 0);
			cur = ring->cur;
			call(&site, 1);
			leave(&before);
			assert_int_equal(ring->cur - cur, cases[i].header + 8);
			world_read_all(&world);
			assert_int_equal(world.records.n, 2);
			assert_int_equal(world.records.items[1].id, cases[i].id);
			world_deinit(&world);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_between_any_two_instructions_has_its_own_records),
		cmocka_unit_test(a_thread_may_lose_the_cpu_for_long_between_any_two_instructions),
		cmocka_unit_test(a_hundred_threads_are_told_apart),
		cmocka_unit_test(stamps_are_those_of_the_program_after_any_time),
		cmocka_unit_test(a_thread_is_told_where_the_ring_does_not_say_so),
		cmocka_unit_test(ids_up_to_30_have_short_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
