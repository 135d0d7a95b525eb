/*
 * What pads promise, by running them: each record is there, whole and in order, or counted as lost; by locks and by
 * sequences.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/syscall.h>

#include "pad_checks.h"

/* ---- rings ----------------------------------------------------------------------------------- */

static void no_record_is_lost_while_the_reader_keeps_up(void **state)
{
	for_each_kind(kind)
	{
		cpu_set_t before;
		struct world world;
		struct site site;

		world_init(&world, kind, tiny);
		world_function(&world, &one_event, 1, &site);
		stay(&before);
		for (unsigned int i = 0; i < 20000; i++) {
			call(&site, i);
			if (i % 100 == 0)
				world_read(&world);
		}
		leave(&before);
		assert_true(world.records.n > 0);
		world_read_all(&world);
		assert_int_equal(world_lost(&world), 0);
		assert_int_equal(world.records.n, 20000);
		for (unsigned int i = 0; i < 20000; i++)
			assert_int_equal(value(&world.records.items[i], 0, 8), i);
		world_deinit(&world);
	}
}

static void what_does_not_fit_is_counted_as_lost(void **state)
{
	for_each_kind(kind)
	{
		struct kymo_ring_packet packet;
		cpu_set_t before;
		struct world world;
		struct site site;
		unsigned int cpu;
		size_t kept;

		world_init(&world, kind, tiny);
		world_function(&world, &one_event, 1, &site);
		cpu = stay(&before);
		for (unsigned int i = 0; i < 5000; i++)
			call(&site, i);
		world_read(&world);
		kept = world.records.n;
		assert_int_equal(kept, 2 * RECORDS_OF(PAGE, 8));
		assert_int_equal(kept + world_lost(&world), 5000);
		for (unsigned int i = 0; i < kept; i++)
			assert_int_equal(value(&world.records.items[i], 0, 8), i);
		call(&site, 6000); /* there is room again */
		leave(&before);
		kymo_ring_finish(&world.readers[cpu], tsc());
		assert_true(kymo_ring_peek(&world.readers[cpu], &packet));
		assert_int_equal(packet.lost, 5000 - kept);
		world_read_all(&world);
		assert_int_equal(world.records.n, kept + 1);
		assert_int_equal(value(&world.records.items[kept], 0, 8), 6000);
		world_deinit(&world);
	}
}

static void overwriting_keeps_the_newest(void **state)
{
	for_each_kind(kind)
	{
		cpu_set_t before;
		struct world world;
		struct site site;

		world_init(&world, kind, (struct shape){ PAGE, 3, true });
		world_function(&world, &one_event, 1, &site);
		stay(&before);
		for (unsigned int i = 0; i < 5000; i++)
			call(&site, i);
		leave(&before);
		world_read_all(&world);
		assert_int_equal(world_lost(&world), 0);
		assert_int_equal(world.records.n, 2 * RECORDS_OF(PAGE, 8) + 5000 % RECORDS_OF(PAGE, 8));
		for (size_t i = 0; i < world.records.n; i++)
			assert_int_equal(value(&world.records.items[i], 0, 8), 5000 - world.records.n + i);
		world_deinit(&world);
	}
}

/* rdtsc may run ahead of the exchange that takes the lock: as if another CPU had been later. */
static void under_a_lock_a_stamp_is_raised_to_the_last_one(void **state)
{
	struct kymo_wire_ring *ring;
	cpu_set_t before;
	struct world world;
	struct site site;
	uint64_t later;
	unsigned int cpu;

	world_init(&world, LOCKS, roomy);
	world_function(&world, &one_event, 1, &site);
	cpu = stay(&before);
	ring = world_ring(&world, cpu);
	call(&site, 1);
	later = tsc() + (UINT64_C(1) << 40);
	ring->last_tsc = later;
	call(&site, 2);
	ring->end = ring->cur; /* the sub-buffer is changed: so is its begin */
	call(&site, 3);
	leave(&before);
	world_read_all(&world);
	assert_int_equal(world.records.n, 3);
	assert_true(world.records.items[0].stamp < later);
	assert_int_equal(world.records.items[1].stamp, later);
	assert_int_equal(world.records.items[2].stamp, later);
	assert_int_equal(ring->opened, 2);
	world_deinit(&world);
}

/* What lies in the pad's frame is no stamp. The stack is full of numbers that are later than any. */
static void a_record_behind_one_that_is_left_out_has_a_stamp_of_its_own(void **state)
{
	const struct kymo_form never = { .n = 1, .ops = { { .code = KYMO_FORM_VALUE } } };
	const struct kymo_pad_event events[] = { { .id = 1, .args = &first_u64, .n_args = 1, .filter = &never },
						 { .id = 2, .args = &first_u64, .n_args = 1 },
						 { .id = 3, .args = &first_u64, .n_args = 1 } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct registers in, out;
		struct world world;
		struct site site;
		uint64_t before;

		memset(stack, 0x7f, STACK_SIZE);
		world_init(&world, kind, roomy);
		world_landing(&world, events, 3, &site);
		randomise(&in, 1, stack);
		memset(stack, 0x7f, in.r[RSP] - (uint64_t)stack);
		before = tsc();
		enter(&site, &in, &out);
		check_unchanged(&in, &out);
		world_read_all(&world);
		assert_int_equal(world.records.n, 2);
		assert_in_range(world.records.items[0].stamp, before, tsc());
		assert_in_range(world.records.items[1].stamp, world.records.items[0].stamp, tsc());
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void a_taken_lock_sends_the_record_to_another_ring(void **state)
{
	for_each_kind(kind)
	{
		struct world world;
		struct site site;
		uint32_t first;

		world_init(&world, kind, roomy);
		world_function(&world, &one_event, 1, &site);
		world_state(&world, KYMO_PAD_LIVE);
		first = world.n_sequenced;
		set_locks(&world, first, world.env.n_rings, 1);
		world_ring(&world, world.n_rings - 1)->lock = 0;
		call(&site, 11);
		assert_int_equal(world_ring(&world, world.n_rings - 1)->lock, 0);
		assert_int_equal(world_ring(&world, first)->lock, 1);
		assert_int_equal(world_lost(&world), 0);

		set_locks(&world, first, world.env.n_rings, 1);
		call(&site, 12);
		call(&site, 13);
		assert_int_equal(world_lost(&world), 2);
		assert_int_equal(world_ring(&world, first)->lost, 2);
		for (uint32_t i = first; i < world.n_rings; i++)
			assert_int_equal(world_ring(&world, i)->lock, 1);
		set_locks(&world, first, world.env.n_rings, 0);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(world.records.items[0].ring, world.n_rings - 1);
		assert_int_equal(value(&world.records.items[0], 0, 8), 11);
		world_deinit(&world);
	}
}

static void while_a_sequences_ring_is_changed_a_ring_with_a_lock_is_used(void **state)
{
	struct world world;
	struct site site;

	if (!is_possible(SEQUENCES))
		skip();
	world_init(&world, SEQUENCES, roomy);
	world_function(&world, &one_event, 1, &site);
	set_locks(&world, 0, world.n_sequenced, 1); /* none is open: all are full */
	call(&site, 1);
	set_locks(&world, 0, world.n_sequenced, 0);
	call(&site, 2);
	set_locks(&world, 0, world.n_sequenced, 1); /* where there is room, locks are nothing to a sequence */
	world_read_all(&world);
	assert_int_equal(world.records.n, 2);
	assert_true(world.records.items[0].ring < world.n_sequenced);
	assert_int_equal(value(&world.records.items[0], 0, 8), 2);
	assert_true(world.records.items[1].ring >= world.n_sequenced);
	assert_int_equal(value(&world.records.items[1], 0, 8), 1);
	assert_int_equal(world.records.items[1].tid, gettid());
	world_deinit(&world);
}

static void a_lock_does_not_stop_a_sequence_with_room(void **state)
{
	cpu_set_t before;
	struct world world;
	struct site site;

	if (!is_possible(SEQUENCES))
		skip();
	world_init(&world, SEQUENCES, roomy);
	world_function(&world, &one_event, 1, &site);
	stay(&before);
	call(&site, 1);
	set_locks(&world, 0, world.n_rings, 1);
	call(&site, 2);
	leave(&before);
	world_read_all(&world);
	assert_int_equal(world.records.n, 2);
	assert_int_equal(world_lost(&world), 0);
	world_deinit(&world);
}

static void the_recorder_closes_a_sequences_ring_on_its_cpu_only(void **state)
{
	struct kymo_wire_ring *ring;
	cpu_set_t before;
	struct world world;
	struct site site;
	unsigned int cpu;

	if (!is_possible(SEQUENCES))
		skip();
	world_init(&world, SEQUENCES, roomy);
	world_function(&world, &one_event, 1, &site);
	cpu = stay(&before);
	ring = world_ring(&world, cpu);
	call(&site, 1);
	ring->lock = 1;
	assert_false(kymo_pad_close_ring(ring, cpu + 1));
	assert_true(ring->end != 0);
	assert_true(kymo_pad_close_ring(ring, cpu));
	assert_int_equal(own_rseq_cs(), 0);
	assert_int_equal(ring->end, 0);
	call(&site, 2); /* to a ring with a lock */
	ring->lock = 0;
	call(&site, 3); /* the sub-buffer is changed */
	leave(&before);
	world_read_all(&world);
	assert_int_equal(world.records.n, 3);
	assert_int_equal(value(&world.records.items[0], 0, 8), 1);
	assert_int_equal(value(&world.records.items[1], 0, 8), 3);
	assert_int_equal(ring->opened, 2);
	assert_int_equal(world_lost(&world), 0);
	world_deinit(&world);
}

/* ---- what kind of process this is ------------------------------------------------------------ */

static void the_state_tells_which_threads_are_recorded(void **state)
{
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &one_event, 1, &site);
		for (unsigned int byte = 0; byte < 256; byte++) {
			bool is_early = byte == KYMO_PAD_EARLY;
			bool is_live = byte == KYMO_PAD_LIVE || (byte == KYMO_PAD_RSEQ && kind == SEQUENCES);

			world_state(&world, (uint8_t)byte);
			call(&site, byte);
			world_read_all(&world);
			assert_int_equal(world.records.n, is_early || is_live);
			if (!world.records.n)
				continue;
			assert_int_equal(world.records.items[0].tid, is_early ? WORLD_PID : gettid());
			assert_int_equal(world.records.items[0].ring < world.n_sequenced, byte == KYMO_PAD_RSEQ);
			world_forget(&world);
		}
		world_deinit(&world);
	}
}

static void call_once(const struct site *site, uint8_t *stack)
{
	call(site, 1);
}

static void a_forked_child_records_nothing(void **state)
{
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &one_event, 1, &site);
		in_child(&site, NULL, call_once);
		call(&site, 2);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(value(&world.records.items[0], 0, 8), 2);
		world_deinit(&world);
	}
}

struct unregistered {
	const struct site *site;
	bool is_unregistered, is_clear;
	uint32_t result;
	pid_t tid;
};

static void *call_unregistered(void *data)
{
	struct unregistered *job = data;

	unregister_own_rseq();
	job->is_unregistered = own_rseq_cpu() == UINT32_MAX;
	job->result = call_in_thread(job->site, 5);
	job->is_clear = !own_rseq_cs();
	job->tid = gettid();
	return NULL;
}

static void a_thread_without_sequences_uses_a_ring_with_a_lock(void **state)
{
	struct unregistered job = { 0 };
	struct world world;
	struct site site;
	pthread_t thread;

	if (!is_possible(SEQUENCES))
		skip();
	world_init(&world, SEQUENCES, roomy);
	world_function(&world, &one_event, 1, &site);
	job.site = &site;
	assert_int_equal(pthread_create(&thread, NULL, call_unregistered, &job), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(job.is_unregistered && job.is_clear);
	assert_int_equal(job.result, 17);
	world_read_all(&world);
	assert_int_equal(world.records.n, 1);
	assert_true(world.records.items[0].ring >= world.n_sequenced);
	assert_int_equal(world.records.items[0].tid, job.tid);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_record_is_lost_while_the_reader_keeps_up),
		cmocka_unit_test(what_does_not_fit_is_counted_as_lost),
		cmocka_unit_test(overwriting_keeps_the_newest),
		cmocka_unit_test(under_a_lock_a_stamp_is_raised_to_the_last_one),
		cmocka_unit_test(a_record_behind_one_that_is_left_out_has_a_stamp_of_its_own),
		cmocka_unit_test(a_taken_lock_sends_the_record_to_another_ring),
		cmocka_unit_test(while_a_sequences_ring_is_changed_a_ring_with_a_lock_is_used),
		cmocka_unit_test(a_lock_does_not_stop_a_sequence_with_room),
		cmocka_unit_test(the_recorder_closes_a_sequences_ring_on_its_cpu_only),
		cmocka_unit_test(the_state_tells_which_threads_are_recorded),
		cmocka_unit_test(a_forked_child_records_nothing),
		cmocka_unit_test(a_thread_without_sequences_uses_a_ring_with_a_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
