/*
 * Pads that read memory which may not be there: values, strings and blocks are right or a fault, in filters and in
 * arguments, in whatever state the pad is; and the program sees nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pad_checks.h"

#define RDI 7
#define LIMIT 20

/* What is read: a page, a hole, two pages, a hole. */
static uint8_t *pages_create(void)
{
	uint8_t *pages = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	fill(pages, 5 * PAGE, 77);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(mprotect(pages + 4 * PAGE, PAGE, PROT_NONE), 0);
	return pages;
}

static void allow(struct world *world)
{
	const uint64_t self = (uint64_t)getpid();

	memcpy(world->live + KYMO_PAD_LIVE_READER, &self, sizeof(self));
}

static bool is_there(const uint8_t *pages, uint64_t address, uint64_t size)
{
	const uint64_t at = address - (uint64_t)pages;

	return (at < PAGE && at + size <= PAGE) || (at >= 2 * PAGE && at < 4 * PAGE && at + size <= 4 * PAGE);
}

/* ---- what the last record has ---------------------------------------------------------------- */

struct last {
	unsigned int n;
	uint32_t id;
	size_t size;
	uint8_t bytes[4096];
};

static void keep(void *data, const struct record *record, const uint8_t *bytes)
{
	struct last *last = data;

	last->n++;
	last->id = record->id;
	last->size = record->size;
	assert_true(record->size <= sizeof(last->bytes));
	memcpy(last->bytes, bytes, record->size);
}

static void world_begin(struct world *world, struct last *last, enum kind kind, struct shape shape)
{
	memset(last, 0, sizeof(*last));
	world_init(world, kind, shape);
	world->on_record = keep;
	world->data = last;
	allow(world);
}

/* Enter with `address` in rdi, and read what that makes. */
static void hit(struct world *world, struct last *last, const struct site *site, uint8_t *stack, uint64_t address)
{
	struct registers in;

	last->n = 0;
	randomise(&in, address, stack);
	in.flags = flags_of(address % 128);
	in.r[RDI] = address;
	enter_unseen(site, &in);
	world_read_all(world);
	world_forget(world);
}

#define REGISTER_FORM \
	{ \
		.n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI } } \
	}

/* ---- values ---------------------------------------------------------------------------------- */

static struct kymo_form load_of(unsigned int size)
{
	return (struct kymo_form){ .n = 2,
				   .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
					    { .code = KYMO_FORM_LOAD, .size = (uint8_t)size } } };
}

static void check_value(const struct last *last, const uint8_t *pages, uint64_t address, unsigned int size)
{
	uint64_t expected = 0, got;

	assert_int_equal(last->size, 1 + 8 + 8);
	assert_int_equal(last->bytes[0], is_there(pages, address, size) ? 0 : 2);
	if (is_there(pages, address, size))
		memcpy(&expected, (const void *)address, size);
	memcpy(&got, last->bytes + 1, 8);
	assert_int_equal(got, address);
	memcpy(&got, last->bytes + 9, 8);
	assert_int_equal(got, expected);
}

static void values_are_read_wherever_they_are_or_are_faults(void **state)
{
	static const uint64_t odd[] = { 0,         1, 4095, UINT64_MAX, UINT64_MAX - 7, 0x800000000000, 0x7ffffffffffc,
					1ull << 63 };
	uint8_t *stack = stack_create(), *pages = pages_create();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		for (unsigned int size = 1; size <= 8; size *= 2) {
			const struct kymo_form form = load_of(size);
			const struct kymo_fetch args[] = {
				FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, RDI),
				{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &form },
			};
			const struct kymo_pad_event events[] = { { .id = 1, .args = args, .n_args = 2 } };
			struct world world;
			struct last last;
			struct site site;

			world_begin(&world, &last, kind, roomy);
			world_landing(&world, events, 1, &site);
			for (unsigned int page = 0; page <= 4; page++)
				for (int at = -9; at < 9; at++) {
					const uint64_t address = (uint64_t)pages + page * PAGE + (uint64_t)(int64_t)at;

					if (address < (uint64_t)pages)
						continue;
					hit(&world, &last, &site, stack, address);
					assert_int_equal(last.n, 1);
					check_value(&last, pages, address, size);
				}
			for (size_t i = 0; i < kymo_countof(odd); i++) {
				hit(&world, &last, &site, stack, odd[i]);
				assert_int_equal(last.n, 1);
				check_value(&last, pages, odd[i], size);
			}
			world_deinit(&world);
		}
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* *(u64 *)(*(u64 *)rdi + 8) + *(u32 *)(rdi + 8), and as a filter. */
static void values_are_read_anywhere_in_a_form(void **state)
{
	const struct kymo_form form = { .n = 9,
					.ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
						 { .code = KYMO_FORM_LOAD, .size = 8 },
						 { .code = KYMO_FORM_VALUE, .value = 8 },
						 { .code = KYMO_FORM_ADD },
						 { .code = KYMO_FORM_LOAD, .size = 8 },
						 { .code = KYMO_FORM_REGISTER, .value = RDI },
						 { .code = KYMO_FORM_VALUE, .value = 8 },
						 { .code = KYMO_FORM_ADD },
						 { .code = KYMO_FORM_LOAD, .size = 4 } } };
	struct kymo_form sum = form;
	const struct kymo_fetch arg = { .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &sum };
	const struct kymo_pad_event events[] = { { .id = 1, .args = &arg, .n_args = 1, .filter = &sum },
						 { .id = 2, .args = &first_u64, .n_args = 1, .filter = &sum },
						 { .id = 3, .args = &first_u64, .n_args = 1 } };
	uint8_t *stack = stack_create(), *pages = pages_create();
	uint64_t *words = (void *)(pages + 2 * PAGE);

	sum.ops[sum.n++] = (struct kymo_form_op){ .code = KYMO_FORM_ADD };
	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;
		uint64_t got;

		world_begin(&world, &last, kind, roomy);
		world_landing(&world, events, 3, &site);
		words[0] = (uint64_t)(words + 4);
		words[1] = 7;
		words[5] = 1000;
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 3);
		words[0] = (uint64_t)(pages + PAGE); /* a fault: no record of those that have the filter */
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.id, 3);
		words[0] = (uint64_t)(words + 4);
		words[1] = 0;
		words[5] = 0; /* false */
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 1);
		world_deinit(&world);

		world_begin(&world, &last, kind, roomy);
		world_landing(&world, events, 1, &site);
		words[1] = 7;
		words[5] = 1000;
		hit(&world, &last, &site, stack, (uint64_t)words);
		assert_int_equal(last.n, 1);
		memcpy(&got, last.bytes + 1, 8);
		assert_int_equal(last.bytes[0], 0);
		assert_int_equal(got, 1007);
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* ---- strings and blocks ---------------------------------------------------------------------- */

static const struct kymo_form at_rdi = REGISTER_FORM;

static const struct kymo_fetch mixed[] = {
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = LIMIT },
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, RDI),
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_BYTES, .form = &at_rdi, .limit = 16 },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = 3 },
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U16, RDI),
	{ .kind = KYMO_FETCH_FORM,
	  .type = KYMO_TYPE_BYTES,
	  .form = &at_rdi,
	  .limit = 24,
	  .array_of = KYMO_ARRAY_OF(KYMO_TYPE_S64) },
	{ .kind = KYMO_FETCH_FORM,
	  .type = KYMO_TYPE_BYTES,
	  .form = &at_rdi,
	  .limit = 6,
	  .array_of = KYMO_ARRAY_OF(KYMO_TYPE_U16) },
};
static const struct kymo_pad_event mixed_event = { .id = 1, .args = mixed, .n_args = 7 };

/* What a string is to be, with its NUL; its size, or 0: a fault. */
static size_t expected_string(const uint8_t *pages, uint64_t address, unsigned int limit, uint8_t *ret)
{
	size_t n = 0;

	for (; n <= limit; n++) {
		if (!is_there(pages, address + n, 1)) {
			*ret = 0;
			return 0;
		}
		ret[n] = *(const uint8_t *)(address + n);
		if (!ret[n])
			return n + 1;
	}
	memcpy(ret + limit, KYMO_STRING_CUT, sizeof(KYMO_STRING_CUT));
	return limit + sizeof(KYMO_STRING_CUT);
}

static size_t add_string(const uint8_t *pages, uint64_t address, unsigned int limit, uint8_t bit, uint8_t *record,
			 size_t at)
{
	const size_t size = expected_string(pages, address, limit, record + at);

	if (!size)
		record[0] |= bit;
	return at + (size ? size : 1);
}

/* The elements before a hole, and how many they are. */
static size_t add_array(const uint8_t *pages, uint64_t address, unsigned int size, unsigned int n_elements, uint8_t bit,
			uint8_t *record, size_t at)
{
	uint16_t n = 0;

	while (n < n_elements && is_there(pages, address + n * size, size)) {
		memcpy(record + at + 2 + n * size, (const uint8_t *)address + n * size, size);
		n++;
	}
	if (n < n_elements)
		record[0] |= bit;
	memcpy(record + at, &n, 2);
	return at + 2 + n * size;
}

static size_t expected_record(const uint8_t *pages, uint64_t address, uint8_t *record)
{
	uint16_t n = 0;
	size_t at;

	record[0] = 0;
	at = add_string(pages, address, LIMIT, 1, record, 1);
	memcpy(record + at, &address, 8);
	at += 8;
	while (n < 16 && is_there(pages, address + n, 1)) {
		record[at + 2 + n] = *(const uint8_t *)(address + n);
		n++;
	}
	if (n < 16)
		record[0] |= 4;
	memcpy(record + at, &n, 2);
	at = add_string(pages, address, 3, 8, record, at + 2 + n);
	memcpy(record + at, &address, 2);
	at = add_array(pages, address, 8, 3, 32, record, at + 2);
	return add_array(pages, address, 2, 3, 64, record, at);
}

static void strings_and_blocks_are_read_as_far_as_they_are_there(void **state)
{
	uint8_t *stack = stack_create(), *pages = pages_create();

	fill(stack, STACK_SIZE, 0);
	memset(pages, 'a', PAGE);
	memset(pages + 2 * PAGE, 'b', 2 * PAGE);
	for (unsigned int i = 0; i < PAGE; i += 23)
		pages[i] = 0;
	pages[3 * PAGE + 2] = 0;
	pages[4 * PAGE - 5] = 0;
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		world.varying[1] = &mixed_event;
		world_landing(&world, &mixed_event, 1, &site);
		for (unsigned int page = 0; page <= 4; page++)
			for (int at = -40; at < 30; at++) {
				const uint64_t address = (uint64_t)pages + page * PAGE + (uint64_t)(int64_t)at;
				uint8_t expected[256];
				size_t size;

				if (address < (uint64_t)pages)
					continue;
				size = expected_record(pages, address, expected);
				hit(&world, &last, &site, stack, address);
				assert_int_equal(last.n, 1);
				assert_int_equal(last.size, size);
				assert_memory_equal(last.bytes, expected, size);
			}
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* Without a system call: what lies in the page of the frame. */
static void the_stack_is_read_by_a_process_that_may_make_no_call(void **state)
{
	uint8_t *stack = stack_create(), *pages = pages_create();
	const uint64_t none = 0;

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct registers in;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		memcpy(world.live + KYMO_PAD_LIVE_READER, &none, sizeof(none));
		world.varying[1] = &mixed_event;
		world_landing(&world, &mixed_event, 1, &site);
		hit(&world, &last, &site, stack, (uint64_t)pages);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 1 | 4 | 8 | 32 | 64);
		assert_int_equal(last.size, 1 + 1 + 8 + 2 + 1 + 2 + 2 + 2);

		randomise(&in, 1, stack);
		in.r[RDI] = in.r[4] + 8;
		memcpy((void *)in.r[RDI], "on the stack", 13);
		last.n = 0;
		enter_unseen(&site, &in);
		world_read_all(&world);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 0);
		assert_string_equal(last.bytes + 1, "on the stack");
		assert_string_equal(last.bytes + 1 + 13 + 8 + 2 + 16, "on " KYMO_STRING_CUT);
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

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

/* The process is known by a thread that has ended: by an id that nobody has. */
static void a_process_is_read_whose_initial_thread_has_ended(void **state)
{
	const uint64_t nobody = (1 << 22) + 1; /* more than the kernel gives (PID_MAX_LIMIT) */
	uint8_t *stack = stack_create(), *pages = pages_create();
	const struct kymo_form form = load_of(8);
	const struct kymo_fetch arg = { .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &form };
	const struct kymo_pad_event event = { .id = 1, .args = &arg, .n_args = 1 };

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		struct world world;
		struct last last;
		struct site site;

		world_begin(&world, &last, kind, roomy);
		memcpy(world.live + KYMO_PAD_LIVE_READER, &nobody, sizeof(nobody));
		world_landing(&world, &event, 1, &site);
		hit(&world, &last, &site, stack, (uint64_t)pages);
		assert_int_equal(last.n, 1);
		assert_int_equal(last.bytes[0], 0);
		assert_memory_equal(last.bytes + 1, pages, 8);
		world_deinit(&world);
	}
	munmap(pages, 5 * PAGE);
	stack_destroy(stack);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void more_than_there_is_room_for_is_refused(void **state)
{
	struct kymo_fetch args[3];
	uint8_t out[16384];
	struct kymo_pad_layout layout;
	const struct kymo_pad_env env = { .guest = 0x10000, .live = 0x20000, .geometry = 0x21000, .n_cpus = 1 };
	const struct kymo_plan plan = { .tactic = KYMO_TACTIC_JUMP,
					.window = 5,
					.n_insns = 1,
					.insn_offset = { 0, 5 },
					.original = { 0x0f, 0x1f, 0x44, 0, 0 } };
	const struct kymo_pad_chain alone = { 0 };
	struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 2 };

	for (size_t i = 0; i < 3; i++)
		args[i] = (struct kymo_fetch){
			.kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = 512
		};
	assert_int_equal(kymo_pad_composed_size(args, 2), 1 + 2 * 516);
	assert_int_equal(kymo_pad_emit(&env, &plan, 0, 0x12000, &event, 1, &alone, out, sizeof(out), &layout), 0);
	event.n_args = 3;
	assert_int_equal(kymo_pad_emit(&env, &plan, 0, 0x12000, &event, 1, &alone, out, sizeof(out), &layout), -EINVAL);
	event.n_args = 1;
	args[0].limit = 513;
	assert_int_equal(kymo_pad_emit(&env, &plan, 0, 0x12000, &event, 1, &alone, out, sizeof(out), &layout), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_wherever_they_are_or_are_faults),
		cmocka_unit_test(values_are_read_anywhere_in_a_form),
		cmocka_unit_test(strings_and_blocks_are_read_as_far_as_they_are_there),
		cmocka_unit_test(the_stack_is_read_by_a_process_that_may_make_no_call),
		cmocka_unit_test(nothing_shows_whatever_way_is_taken),
		cmocka_unit_test(a_forked_child_reads_nothing),
		cmocka_unit_test(near_the_end_of_the_stack_nothing_is_read),
		cmocka_unit_test(near_the_end_of_a_threads_stack_nothing_is_read),
		cmocka_unit_test(other_threads_may_take_memory_away_at_any_time),
		cmocka_unit_test(a_process_is_read_whose_initial_thread_has_ended),
		cmocka_unit_test(more_than_there_is_room_for_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
