/* Of which hits pads make records: exactly so many, on threads that hit at once; the program sees nothing of it; words
 * that another process writes decide about records, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "pad_checks.h"

#define SLOT 3
#define THREADS 4
#define CALLS 5000u
#define LONG ((uint64_t)INT32_MAX * 4) /* ticks: a second and more */

static struct kymo_pad_event sampled(enum kymo_pad_sampling kind, uint64_t n, uint64_t burst)
{
	return (struct kymo_pad_event){
		.id = 1,
		.args = &first_u64,
		.n_args = 1,
		.sample = { .kind = kind, .slot = SLOT, .n = n, .burst = burst },
	};
}

static uint64_t *word_of(struct world *world)
{
	return &world->samples[SLOT].word;
}

static void check_calls(struct world *world, const struct site *site, uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		assert_int_equal(call(site, i), (uint32_t)(2 * i + 7));
	world_read_all(world);
}

/* ---- which ones ------------------------------------------------------------------------------ */

static void one_in_so_many_is_recorded(void **state)
{
	static const uint32_t every[] = { 1, 2, 3, 7, 64, 1000, KYMO_PAD_SAMPLE_MAX };

	for_each_kind(kind) for (size_t k = 0; k < kymo_countof(every); k++)
	{
		const struct kymo_pad_event event = sampled(KYMO_PAD_SAMPLE_EVERY, every[k], 0);
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &event, 1, &site);
		check_calls(&world, &site, 0, 1000);
		assert_int_equal(world.records.n, (1000 + every[k] - 1) / every[k]);
		for (size_t i = 0; i < world.records.n; i++)
			assert_int_equal(value(&world.records.items[i], 0, 8), i * every[k]);
		assert_int_equal(*word_of(&world), 1000);
		world_deinit(&world);
	}
}

static void the_first_ones_are_recorded(void **state)
{
	const struct kymo_pad_event event = sampled(KYMO_PAD_SAMPLE_FIRST, 10, 0);

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &event, 1, &site);
		check_calls(&world, &site, 0, 1000);
		assert_int_equal(world.records.n, 10);
		for (size_t i = 0; i < 10; i++)
			assert_int_equal(value(&world.records.items[i], 0, 8), i);
		assert_int_equal(*word_of(&world), 10);
		world_deinit(&world);
	}
}

static void a_bucket_of_tokens_is_taken_and_fills_again(void **state)
{
	const struct kymo_pad_event event = sampled(KYMO_PAD_SAMPLE_RATE, LONG, 0),
				    five = sampled(KYMO_PAD_SAMPLE_RATE, 400000000, 4 * 400000000);

	for_each_kind(kind)
	{
		struct world world;
		struct site site, site_of_five;

		world_init(&world, kind, roomy);
		world_function(&world, &event, 1, &site);
		check_calls(&world, &site, 0, 100);
		assert_int_equal(world.records.n, 1);
		assert_true(*word_of(&world) > tsc() && *word_of(&world) <= tsc() + LONG);
		*word_of(&world) = tsc() - 1; /* so long later */
		check_calls(&world, &site, 0, 100);
		assert_int_equal(world.records.n, 2);
		*word_of(&world) = 0;
		world_function(&world, &five, 1, &site_of_five);
		check_calls(&world, &site_of_five, 0, 100);
		assert_int_equal(world.records.n, 2 + 5);
		world_deinit(&world);
	}
}

static void a_clock_that_was_set_back_is_no_end(void **state)
{
	const struct kymo_pad_event rate = sampled(KYMO_PAD_SAMPLE_RATE, LONG, 0),
				    bursts = sampled(KYMO_PAD_SAMPLE_RATE, 400000000, 4 * 400000000);

	for_each_kind(kind) for (int round = 0; round < 2; round++)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, round ? &bursts : &rate, 1, &site);
		*word_of(&world) = tsc() + (1ull << 40);
		check_calls(&world, &site, 0, 100);
		assert_int_equal(world.records.n, round ? 5 : 1); /* as of a full bucket */
		assert_true(*word_of(&world) <= tsc() + LONG);
		world_deinit(&world);
	}
}

/* A thread that lost its CPU between its stamp and its look at the word sees that of a later hit. */
static void a_stamp_that_is_older_than_the_word_takes_no_token(void **state)
{
	const struct kymo_pad_event event = sampled(KYMO_PAD_SAMPLE_RATE, LONG, 0);
	const uint64_t late[] = { 1, 100000, 1ull << 30, 1ull << 35 };

	for_each_kind(kind) for (size_t k = 0; k < kymo_countof(late); k++)
	{
		const uint64_t word = tsc() + LONG + late[k];
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &event, 1, &site);
		*word_of(&world) = word;
		check_calls(&world, &site, 0, 100);
		assert_int_equal(world.records.n, 0);
		assert_int_equal(*word_of(&world), word);
		world_deinit(&world);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *call_often(void *data)
{
	for (uint64_t i = 0; i < CALLS; i++)
		if (call(data, i) != (uint32_t)(2 * i + 7))
			return data;
	return NULL;
}

static size_t records_of_threads(enum kind kind, const struct kymo_pad_event *event)
{
	pthread_t threads[THREADS];
	struct world world;
	struct site site;
	size_t n;

	world_init(&world, kind, (struct shape){ 1 << 20, 2, false });
	world_function(&world, event, 1, &site);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &site), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	world_read_all(&world);
	n = world.records.n + world_lost(&world);
	world_deinit(&world);
	return n;
}

static void threads_share_a_count(void **state)
{
	const struct kymo_pad_event every = sampled(KYMO_PAD_SAMPLE_EVERY, 10, 0),
				    first = sampled(KYMO_PAD_SAMPLE_FIRST, 100, 0),
				    rate = sampled(KYMO_PAD_SAMPLE_RATE, LONG, 0);

	for_each_kind(kind) for (int round = 0; round < 20; round++)
	{
		assert_int_equal(records_of_threads(kind, &every), THREADS * CALLS / 10);
		assert_int_equal(records_of_threads(kind, &first), 100);
		assert_int_equal(records_of_threads(kind, &rate), 1);
	}
}

/* ---- what the program sees, and what writes the word ------------------------------------------ */

static void the_program_sees_nothing(void **state)
{
	const struct kymo_pad_event events[] = { sampled(KYMO_PAD_SAMPLE_EVERY, 3, 0),
						 sampled(KYMO_PAD_SAMPLE_FIRST, 200, 0),
						 sampled(KYMO_PAD_SAMPLE_RATE, 1000, 100000) };
	uint8_t *stack = stack_create();

	for_each_kind(kind) for (size_t k = 0; k < kymo_countof(events); k++)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &events[k], 1, &site);
		for (unsigned int i = 0; i < 400; i++)
			sees_nothing(&site, stack, i);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void any_word_is_taken(void **state)
{
	static const uint64_t words[] = { 0, 1, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX };
	const struct kymo_pad_event events[] = { sampled(KYMO_PAD_SAMPLE_EVERY, 3, 0),
						 sampled(KYMO_PAD_SAMPLE_EVERY, 4, 0),
						 sampled(KYMO_PAD_SAMPLE_FIRST, 7, 0),
						 sampled(KYMO_PAD_SAMPLE_RATE, LONG, INT32_MAX) };

	for_each_kind(kind) for (size_t k = 0; k < kymo_countof(events); k++)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &events[k], 1, &site);
		for (size_t i = 0; i < kymo_countof(words); i++) {
			*word_of(&world) = words[i];
			check_calls(&world, &site, 0, 5);
		}
		assert_true(world.records.n <= 5 * kymo_countof(words));
		world_deinit(&world);
	}
}

static void where_nothing_is_recorded_nothing_is_counted(void **state)
{
	const struct kymo_pad_event event = sampled(KYMO_PAD_SAMPLE_FIRST, 10, 0);

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &event, 1, &site);
		world_state(&world, 0);
		check_calls(&world, &site, 0, 100);
		assert_int_equal(*word_of(&world), 0);
		assert_int_equal(world.records.n, 0);
		world_deinit(&world);
	}
}

/* ---- children that a handler forks ----------------------------------------------------------- */

static struct {
	const struct world *world;
	uint64_t pad;
	bool is_child;
	unsigned int n;
} stepping;

#define TRAP_FLAG 0x100

/* At each instruction of the pad: a child goes on without the memory that is shared. */
static void fork_here(int signal, siginfo_t *info, void *data)
{
	const struct world *world = stepping.world;
	ucontext_t *context = data;
	int status = 0;
	pid_t child;

	if ((uint64_t)context->uc_mcontext.gregs[REG_RIP] - stepping.pad >= 1024)
		return;
	stepping.n++;
	child = fork();
	if (!child) {
		stepping.is_child = true;
		context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		munmap(world->counts, sizeof(*world->counts));
		munmap(world->around, world->shared_size + 2 * world->reserve);
	} else if (child < 0 || waitpid(child, &status, 0) != child || status) {
		_exit(99);
	}
}

static void set_trap_flag(bool on)
{
	__asm__ volatile("lea -128(%%rsp),%%rsp; pushfq; andq $~0x100,(%%rsp); orq %0,(%%rsp); popfq; "
			 "lea 128(%%rsp),%%rsp" ::"r"(on ? (uint64_t)TRAP_FLAG : 0)
			 : "memory", "cc");
}

static void step_through(const struct world *world, const struct site *site)
{
	const struct sigaction action = { .sa_sigaction = fork_here, .sa_flags = SA_SIGINFO };
	struct sigaction before;
	uint32_t result;

	stepping.world = world;
	stepping.pad = site->pad;
	stepping.n = 0;
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	set_trap_flag(true);
	result = call(site, 21);
	if (stepping.is_child)
		_exit(result == 49 ? 0 : 1);
	set_trap_flag(false);
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
	assert_int_equal(result, 49);
	assert_true(stepping.n > 5);
}

/* A hit that is left out, so that what is tested ends where a record would begin. */
static void a_child_that_is_forked_within_goes_on(void **state)
{
	const struct kymo_pad_event events[] = { sampled(KYMO_PAD_SAMPLE_EVERY, 1000, 0),
						 sampled(KYMO_PAD_SAMPLE_FIRST, 1, 0),
						 sampled(KYMO_PAD_SAMPLE_RATE, LONG, 0) };

	for_each_kind(kind) for (size_t k = 0; k < kymo_countof(events); k++)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_function(&world, &events[k], 1, &site);
		*word_of(&world) = events[k].sample.kind == KYMO_PAD_SAMPLE_RATE ? tsc() + LONG / 2 : 1;
		step_through(&world, &site);
		world_read_all(&world);
		assert_int_equal(world.records.n, 0);
		world_deinit(&world);
	}
}

static void bad_ones_are_refused(void **state)
{
	static const struct kymo_pad_sample samples[] = {
		{ KYMO_PAD_SAMPLE_EVERY, 0, 0, 0 },
		{ KYMO_PAD_SAMPLE_EVERY, KYMO_WIRE_SAMPLES, 1, 0 },
		{ KYMO_PAD_SAMPLE_FIRST, 0, (uint64_t)KYMO_PAD_SAMPLE_MAX + 1, 0 },
		{ KYMO_PAD_SAMPLE_RATE, 0, LONG + 1, 0 },
		{ KYMO_PAD_SAMPLE_RATE, 0, 1, (uint64_t)KYMO_PAD_SAMPLE_MAX + 1 },
	};
	static uint8_t out[8192] __attribute__((aligned(64)));
	struct world world;
	struct site site;

	world_init(&world, LOCKS, roomy);
	world_function(&world, &one_event, 1, &site);
	for (size_t i = 0; i < kymo_countof(samples); i++) {
		const struct kymo_pad_event event = { .id = 1, .sample = samples[i] };
		struct kymo_pad_layout layout;

		assert_int_equal(kymo_pad_emit(&world.env, &site.plan, site.address, site.pad, &event, 1,
					       &(struct kymo_pad_chain){ .next = 0 }, out, sizeof(out), &layout),
				 -EINVAL);
	}
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_in_so_many_is_recorded),
		cmocka_unit_test(the_first_ones_are_recorded),
		cmocka_unit_test(a_bucket_of_tokens_is_taken_and_fills_again),
		cmocka_unit_test(a_clock_that_was_set_back_is_no_end),
		cmocka_unit_test(a_stamp_that_is_older_than_the_word_takes_no_token),
		cmocka_unit_test(threads_share_a_count),
		cmocka_unit_test(the_program_sees_nothing),
		cmocka_unit_test(any_word_is_taken),
		cmocka_unit_test(where_nothing_is_recorded_nothing_is_counted),
		cmocka_unit_test(a_child_that_is_forked_within_goes_on),
		cmocka_unit_test(bad_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
