/*
 * What pads promise, by running them: threads and signal handlers, between any two instructions, tear no payload and
 * lose none that is not counted.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "breakpoints.h"
#include "payload_checks.h"
#include "ticks.h"

#define N_THREADS 8
#define N_CALLS 50000u

/* What a payload of theirs begins with; bytes of mix(seed + i) follow. */
struct head {
	uint16_t length;
	uint16_t thread;
	uint32_t number, in_handler;
} __attribute__((packed));

struct producer {
	const struct site *site;
	pthread_t thread;
	pid_t tid;
	uint16_t index;
	volatile uint32_t n[2]; /* calls, and those of the handler */
	uint8_t *seen[2];
	bool is_wrong;
	volatile bool is_done;
};

static _Thread_local struct producer *producer;

static uint64_t seed_of(const struct head *head)
{
	return mix((uint64_t)head->thread << 40 | (uint64_t)head->in_handler << 32 | head->number);
}

static void pass(struct producer *me, uint32_t in_handler)
{
	struct head head = { .thread = me->index, .number = me->n[in_handler], .in_handler = in_handler };
	uint64_t seed = seed_of(&head), x = seed & 0xffff;
	uint8_t bytes[KYMO_PAYLOAD_MAX];

	me->n[in_handler] = me->n[in_handler] + 1;
	head.length = (uint16_t)(sizeof(head) + seed % (seed % 64 ? 100 : sizeof(bytes) - sizeof(head) + 1));
	memcpy(bytes, &head, sizeof(head));
	for (size_t i = sizeof(head); i < head.length; i++)
		bytes[i] = (uint8_t)(seed >> i % 56) ^ (uint8_t)i;
	if (((uint32_t(*)(uint64_t, const uint8_t *, uint64_t))me->site->address)(x, bytes, head.length) !=
	    (uint32_t)(2 * x + 7))
		me->is_wrong = true;
}

static void on_timer(int signal)
{
	pass(producer, 1);
}

static void *produce(void *data)
{
	struct producer *me = data;
	timer_t timer;

	producer = me;
	me->tid = gettid();
	if (ticks_start(150000, &timer)) {
		while (me->n[0] < N_CALLS)
			pass(me, 0);
		ticks_stop(timer);
	} else {
		me->is_wrong = true;
	}
	me->is_done = true;
	return NULL;
}

static void check_produced(void *data, const struct record *record, const uint8_t *bytes)
{
	struct producer *producers = data, *from;
	struct head head;
	uint64_t seed;

	assert_true(record->size >= sizeof(head));
	memcpy(&head, bytes, sizeof(head));
	assert_true(head.thread < N_THREADS && head.in_handler < 2);
	from = &producers[head.thread];
	assert_int_equal(record->tid, from->tid);
	assert_int_equal(head.length, record->size);
	assert_true(head.number < N_CALLS * 10);
	assert_int_equal(from->seen[head.in_handler][head.number]++, 0);
	seed = seed_of(&head);
	for (size_t i = sizeof(head); i < head.length; i++)
		if (bytes[i] != ((uint8_t)(seed >> i % 56) ^ (uint8_t)i))
			fail_msg("thread %u, number %u: byte %zu of %u", head.thread, head.number, i, head.length);
}

static void run_producers(struct world *world, struct producer *producers)
{
	bool is_done = false;

	for (uint16_t i = 0; i < N_THREADS; i++) {
		producers[i].index = i;
		for (unsigned int k = 0; k < 2; k++)
			producers[i].seen[k] = calloc(N_CALLS * 10, 1);
		assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
	}
	while (!is_done) {
		struct timespec pause = { 0, 200000 };

		world_read(world);
		world_forget(world);
		nanosleep(&pause, NULL);
		is_done = true;
		for (unsigned int i = 0; i < N_THREADS; i++)
			is_done &= producers[i].is_done;
	}
	for (unsigned int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
	world_read_all(world);
}

static void threads_and_their_handlers_tear_nothing_and_losses_are_counted(void **state)
{
	static const struct kymo_fetch arg = PAYLOAD(6, 2); /* rsi, rdx */
	static const struct kymo_pad_event event = { .id = ID, .args = &arg, .n_args = 1 };
	struct sigaction before;

	ticks_catch(on_timer, &before);
	for_each_kind(kind)
	{
		struct producer producers[N_THREADS] = { 0 };
		uint64_t n_passed = 0, n_handled = 0, n_seen = 0;
		struct world world;
		struct site site;

		world_init(&world, kind, (struct shape){ 256 << 10, 16, false });
		world_function(&world, &event, 1, &site);
		world.sizes[ID] = LENGTH_FIRST;
		world.on_record = check_produced;
		world.data = producers;
		for (unsigned int i = 0; i < N_THREADS; i++)
			producers[i].site = &site;
		run_producers(&world, producers);
		for (unsigned int i = 0; i < N_THREADS; i++) {
			assert_false(producers[i].is_wrong);
			for (unsigned int k = 0; k < 2; k++) {
				n_passed += producers[i].n[k];
				for (uint32_t j = 0; j < N_CALLS * 10; j++)
					n_seen += producers[i].seen[k][j];
				free(producers[i].seen[k]);
			}
			n_handled += producers[i].n[1];
		}
		assert_true(n_handled > 0 && n_seen > 0);
		assert_int_equal(n_seen + world_lost(&world), n_passed);
		world_deinit(&world);
	}
	ticks_release(&before);
}

/* A signal at each instruction, in the middle of the loop too. */
struct broken {
	uint8_t *stack, *bytes;
	size_t size;
};

static void enter_broken(struct breakpoints *breakpoints, uint64_t at)
{
	const struct broken *broken = breakpoints->data;

	breakpoints->world->sizes[ID] = (uint32_t)broken->size;
	enter_with(breakpoints->site, broken->stack, R10, broken->bytes, R11, broken->size, at);
}

static bool enter_in_handler(const struct breakpoints *breakpoints)
{
	const struct broken *broken = breakpoints->data;
	uint32_t (*f)(uint64_t, const uint8_t *, uint64_t) =
		(uint32_t(*)(uint64_t, const uint8_t *, uint64_t))breakpoints->in_handler->address;

	return f(4, broken->bytes + 1, broken->size) == 15;
}

static void check_broken(struct breakpoints *breakpoints, uint64_t at, unsigned int hits)
{
	const struct broken *broken = breakpoints->data;
	const struct world *world = breakpoints->world;
	unsigned int n[2] = { 0 };

	assert_int_equal(world->records.n, 1 + hits);
	for (size_t i = 0; i < world->records.n; i++) {
		const struct record *record = &world->records.items[i];
		unsigned int is_handlers = record->id == ID + 1;

		assert_int_equal(record->size, broken->size);
		assert_memory_equal(record->args, broken->bytes + is_handlers, broken->size);
		n[is_handlers]++;
	}
	assert_int_equal(n[0], 1);
	assert_int_equal(n[1], hits);
}

static void a_handler_between_any_two_instructions_tears_nothing(void **state)
{
	static const struct kymo_fetch arg = PAYLOAD(6, 2);
	static const struct kymo_pad_event handlers_event = { .id = ID + 1, .args = &arg, .n_args = 1 };
	static const struct breakpoint_ops ops = { .enter = enter_broken,
						   .handle = enter_in_handler,
						   .check = check_broken };
	static const size_t sizes[] = { 0, 3, 8, 33, 64 };
	struct broken broken = { .stack = stack_create() };

	broken.bytes = broken.stack + 100;
	fill(broken.bytes, 100, 6);
	for_each_kind(kind)
	{
		for (size_t i = 0; i < kymo_countof(sizes); i++) {
			struct world world;
			struct site site, in_handler;

			broken.size = sizes[i];
			world_init(&world, kind, roomy);
			world_landing(&world, &one_payload, 1, &site);
			world_function(&world, &handlers_event, 1, &in_handler);
			world.sizes[ID + 1] = (uint32_t)sizes[i];
			break_everywhere(&world, &site, &in_handler, &ops, &broken);
			world_deinit(&world);
		}
	}
	stack_destroy(broken.stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_and_their_handlers_tear_nothing_and_losses_are_counted),
		cmocka_unit_test(a_handler_between_any_two_instructions_tears_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
