/* Pads that read memory which may not be there: the program sees nothing, in whatever state the pad is, and may take
 * the memory away at any time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>

#include "pad_reads.h"

/* ---- the program sees nothing ---------------------------------------------------------------- */

static uint8_t *some_pages;

static void pass(const struct site *site, uint8_t *stack, uint64_t seed, uint64_t size)
{
	struct registers in;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	in.r[RDI] = (uint64_t)some_pages + size * 5 % (5 * PAGE);
	fill((uint8_t *)in.r[4] - RED_ZONE, AROUND, seed);
	enter_unseen(site, &in);
}

static void nothing_shows_whatever_way_is_taken(void **state)
{
	const struct kymo_form form = load_of(4);
	const struct kymo_pad_event events[] = { { .id = 1, .args = mixed, .n_args = 5 },
						 { .id = 2, .args = mixed, .n_args = 5, .filter = &form },
						 { .id = 3, .args = &first_u64, .n_args = 1 } };
	uint8_t *stack = stack_create();

	some_pages = pages_create();
	for_each_kind(kind)
	{
		struct world world;
		struct site site, before;

		world_init(&world, kind, tiny);
		allow(&world);
		world.varying[1] = world.varying[2] = &mixed_event;
		world_landing(&world, events, 3, &site);
		world_put_before(&world, &site, events, 2, &before);
		pass_slow_paths(&world, &before, stack, 40, pass);
		world_deinit(&world);
	}
	munmap(some_pages, 5 * PAGE);
	stack_destroy(stack);
}

static void reads(const struct site *site, uint8_t *stack)
{
	sees_nothing(site, stack, 3);
}

static void a_forked_child_reads_nothing(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &mixed_event;
		world_landing(&world, &mixed_event, 1, &site);
		in_child(&site, stack, reads);
		world_read_all(&world);
		assert_int_equal(last.n, 0);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* The initial thread's stack ends below: there is no room for what is composed, and for an event without that there is.
 */
static void near_the_end_of_the_stack_nothing_is_read(void **state)
{
	const struct kymo_pad_event events[] = { mixed_event, { .id = 2, .args = &first_u64, .n_args = 1 } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct registers in;
		struct last last;
		struct site site;
		uint64_t words[2];

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &mixed_event;
		world_landing(&world, events, 2, &site);
		randomise(&in, 5, stack);
		words[0] = in.r[4] - 300;
		words[1] = in.r[4] - 800;
		memcpy(world.live + KYMO_PAD_LIVE_STACK_ENOUGH, words, sizeof(words));
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.id, 2);
		assert_int_equal(world_lost(&world), 1);
		words[0] = in.r[4] - 700;
		memcpy(world.live + KYMO_PAD_LIVE_STACK_ENOUGH, words, sizeof(words));
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 3);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* The same of another thread's stack, which begins 2,000 bytes below. */
static void near_the_end_of_a_threads_stack_nothing_is_read(void **state)
{
	static __thread uint64_t begin;
	const struct kymo_pad_event events[] = { mixed_event, { .id = 2, .args = &first_u64, .n_args = 1 } };
	const uint64_t all[2] = { UINT64_MAX, UINT64_MAX };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct registers in;
		struct last last;
		struct site site;
		uint64_t words[2] = { (uint64_t)&begin - (uint64_t)__builtin_thread_pointer(), 1900 };

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &mixed_event;
		world_landing(&world, events, 2, &site);
		randomise(&in, 5, stack);
		begin = in.r[4] - 2000;
		memcpy(world.live + KYMO_PAD_LIVE_STACK_ENOUGH, all, sizeof(all));
		memcpy(world.live + KYMO_PAD_LIVE_THREAD_STACK, words, sizeof(words));
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.id, 2);
		assert_int_equal(world_lost(&world), 1);
		begin = in.r[4] - 3000;
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 3);
		begin = in.r[4] + 8; /* it is not on that stack */
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 5);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- while others take it away --------------------------------------------------------------- */

#define N_READERS 4
#define N_TAKERS 2
#define N_SLOTS 8
#define READS 20000

static uint8_t *slots; /* N_SLOTS, two pages each; when there, each word of them is its own number */
static bool is_over;

static void put_back(unsigned int slot)
{
	uint64_t *words = mmap(slots + slot * 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	for (unsigned int i = 0; i < 2 * PAGE / 8; i++) /* first zeros are there */
		words[i] = UINT64_C(0x5a5a5a5a5a5a5a5a);
}

static void *take_away(void *data)
{
	uint64_t seed = (uint64_t)(uintptr_t)data;
	const unsigned int first = (unsigned int)seed * (N_SLOTS / N_TAKERS);

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		const unsigned int slot = first + (unsigned int)((seed = mix(seed + 1)) % (N_SLOTS / N_TAKERS));
		uint8_t *at = slots + slot * 2 * PAGE;

		switch (seed >> 8 & 3) {
		case 0:
			munmap(at, 2 * PAGE);
			break;
		case 1:
			munmap(at + PAGE, PAGE);
			break;
		case 2:
			mprotect(at, PAGE, PROT_NONE);
			break;
		default:
			madvise(at, 2 * PAGE, MADV_DONTNEED);
			break;
		}
		put_back(slot);
	}
	return NULL;
}

static void *read_slots(void *data)
{
	const struct site *site = data;
	uint64_t seed = (uint64_t)gettid();

	for (unsigned int i = 0; i < READS; i++)
		call_in_thread(site, (uint64_t)slots + (seed = mix(seed + 1)) % (N_SLOTS * 2 * PAGE - 64));
	return NULL;
}

struct counts {
	unsigned int right, faults, wrong;
};

/* A word of zeros and of 'Z' alone is right; nothing else ever was there. */
static void check_torture(void *data, const struct record *record, const uint8_t *bytes)
{
	struct counts *counts = data;
	bool is_right = true;
	uint64_t value_;

	memcpy(&value_, bytes + 1, 8);
	for (unsigned int i = 0; i < 8; i++)
		is_right &= (uint8_t)(value_ >> 8 * i) == 0 || (uint8_t)(value_ >> 8 * i) == 0x5a;
	counts->faults += bytes[0] & 1;
	counts->right += is_right && !(bytes[0] & 1);
	counts->wrong += !is_right || (bytes[0] & 1 && value_);
	for (const uint8_t *c = bytes + 9; *c && c < bytes + 9 + LIMIT; c++)
		counts->wrong += *c != 0x5a;
}

static void other_threads_may_take_memory_away_at_any_time(void **state)
{
	const struct kymo_form form = load_of(8);
	const struct kymo_fetch args[] = {
		{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &form },
		{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = LIMIT },
	};
	const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 2 };

	slots = mmap(NULL, N_SLOTS * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(slots, MAP_FAILED);
	for (unsigned int i = 0; i < N_SLOTS; i++)
		put_back(i);
	for_each_kind(kind)
	{
		pthread_t readers[N_READERS], takers[N_TAKERS];
		struct counts counts = { 0 };
		struct world world;
		struct site site;

		world_init(&world, kind, (struct shape){ 1u << 20, 16, false });
		allow(&world);
		world.varying[1] = &event;
		world.on_record = check_torture;
		world.data = &counts;
		world_function(&world, &event, 1, &site);
		is_over = false;
		for (uintptr_t i = 0; i < N_TAKERS; i++)
			assert_int_equal(pthread_create(&takers[i], NULL, take_away, (void *)i), 0);
		for (unsigned int i = 0; i < N_READERS; i++)
			assert_int_equal(pthread_create(&readers[i], NULL, read_slots, &site), 0);
		for (unsigned int i = 0; i < N_READERS; i++)
			pthread_join(readers[i], NULL);
		__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
		for (unsigned int i = 0; i < N_TAKERS; i++)
			pthread_join(takers[i], NULL);
		world_read_all(&world);
		print_message("%u right, %u faults, %u wrong\n", counts.right, counts.faults, counts.wrong);
		assert_int_equal(counts.wrong, 0);
		assert_int_equal(counts.right + counts.faults + world_lost(&world), N_READERS * READS);
		assert_true(counts.right > 0);
		world_deinit(&world);
	}
	munmap(slots, N_SLOTS * 2 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_shows_whatever_way_is_taken),
		cmocka_unit_test(a_forked_child_reads_nothing),
		cmocka_unit_test(near_the_end_of_the_stack_nothing_is_read),
		cmocka_unit_test(near_the_end_of_a_threads_stack_nothing_is_read),
		cmocka_unit_test(other_threads_may_take_memory_away_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
