/*
 * What pads promise, by running them: the program sees nothing of them, and each record is there, whole and in order,
 * or counted as lost. Each test is run for both kinds of pad, where restartable sequences are to be had.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "pads.h"

#define PAGE 4096u
#define CF 0x1u
#define DF 0x400u
#define ARITHMETIC 0x8d5u
#define RSP 4
#define REG_IP 16
#define REG_FLAGS 17

static const struct shape roomy = { 65536, 4, false };
static const struct shape tiny = { PAGE, 2, false };

#define for_each_kind(kind)                                                   \
	for (enum kind kind = LOCKS; kind < N_KINDS; kind++)                  \
		if (!is_possible(kind))                                       \
			print_message("no sequences: this C library has none\n"); \
		else

static const struct kymo_fetch first_u64 = { KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1 };
static const struct kymo_pad_event one_event = { 1, &first_u64, 1 };

static uint64_t value(const struct record *record, size_t at, unsigned int size)
{
	uint64_t ret = 0;

	assert_true(at + size <= record->size);
	memcpy(&ret, record->args + at, size);
	return ret;
}

static uint64_t cut(uint64_t x, unsigned int size)
{
	return size == 8 ? x : x & ((UINT64_C(1) << 8 * size) - 1);
}

/* On the CPU where it is, so that one ring gets everything. */
static unsigned int stay(cpu_set_t *before)
{
	unsigned int cpu;
	cpu_set_t here;

	assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
	assert_int_equal(getcpu(&cpu, NULL), 0);
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	assert_int_equal(sched_setaffinity(0, sizeof(here), &here), 0);
	return cpu;
}

static void leave(const cpu_set_t *before)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*before), before), 0);
}

/* ---- the program sees nothing ------------------------------------------------------------------------------------ */

static void randomise(struct registers *in, uint64_t seed, const uint8_t *stack)
{
	uint64_t *words = (uint64_t *)(void *)in->vectors;

	for (unsigned int i = 0; i < 16; i++)
		in->r[i] = mix(seed * 16 + i);
	for (size_t i = 0; i < sizeof(in->vectors) / 8; i++)
		words[i] = mix(seed + 1000 + i);
	for (unsigned int i = 0; i < 8; i++)
		in->masks[i] = mix(seed + i) & 0xffff;
	in->r[RSP] = (uint64_t)stack + STACK_SIZE / 2 + (seed & 63) * 8;
	in->flags = 0x202;
}

/* Flags number 0 to 127: each combination of the arithmetic ones and DF. */
static uint64_t flags_of(unsigned int n)
{
	static const uint32_t bits[] = { 0x1, 0x4, 0x10, 0x40, 0x80, 0x800, DF };
	uint64_t flags = 0x202;

	for (size_t i = 0; i < kymo_countof(bits); i++)
		flags |= n >> i & 1 ? bits[i] : 0;
	return flags;
}

static void sees_nothing(const struct site *site, uint8_t *stack, uint64_t seed)
{
	uint8_t before[128 + 512];
	struct registers in, out;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	for (size_t i = 0; i < sizeof(before); i++)
		before[i] = (uint8_t)mix(seed + i);
	memcpy((uint8_t *)in.r[RSP] - 128, before, sizeof(before));
	enter(site, &in, &out);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(out.r[i], in.r[i]);
	assert_int_equal(out.flags & (ARITHMETIC | DF), in.flags & (ARITHMETIC | DF));
	assert_memory_equal(out.vectors, in.vectors, sizeof(in.vectors));
	assert_memory_equal(out.masks, in.masks, sizeof(in.masks));
	assert_memory_equal((uint8_t *)in.r[RSP] - 128, before, sizeof(before));
}

static const struct kymo_fetch every_way[] = {
	{ KYMO_FETCH_REGISTER, KYMO_TYPE_X64, REG_FLAGS }, { KYMO_FETCH_REGISTER, KYMO_TYPE_U8, 0 },
	{ KYMO_FETCH_STACK, KYMO_TYPE_U64, 0 },		   { KYMO_FETCH_STACK, KYMO_TYPE_U64, 255 },
	{ KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S64, -1 },	   { KYMO_FETCH_REGISTER, KYMO_TYPE_U16, 11 },
	{ KYMO_FETCH_REGISTER, KYMO_TYPE_U32, RSP },	   { KYMO_FETCH_REGISTER, KYMO_TYPE_U64, REG_IP },
};

static void registers_flags_vectors_and_the_red_zone_survive(void **state)
{
	static const struct kymo_pad_event events[] = { { 1, every_way, 8 }, { 2, every_way + 1, 6 } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, events, 2, &site);
		for (unsigned int i = 0; i < 512; i++)
			sees_nothing(&site, stack, i);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1024);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void set_locks(const struct world *world, uint32_t first, uint32_t n, uint32_t value_)
{
	for (uint32_t i = first; i < first + n; i++)
		world_ring(world, i)->lock = value_;
}

static void so_they_do_on_every_slow_path(void **state)
{
	static const struct kymo_pad_event event = { 1, every_way, 8 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		static const uint8_t states[] = { 0, KYMO_PAD_EARLY, KYMO_PAD_LIVE, 0x33 };
		struct world world;
		struct site site;

		world_init(&world, kind, tiny);
		world_landing(&world, &event, 1, &site);
		for (unsigned int i = 0; i < 512; i++)	/* changes the sub-buffer, then loses */
			sees_nothing(&site, stack, i);
		assert_true(world_lost(&world) > 0);
		for (size_t s = 0; s < kymo_countof(states); s++) {
			world_state(&world, states[s]);
			for (unsigned int i = 0; i < 128; i++)
				sees_nothing(&site, stack, i);
		}
		set_locks(&world, 0, world.n_rings - 1, 1);
		for (unsigned int k = 0; k < 2; k++) {
			world_state(&world, kind == SEQUENCES ? KYMO_PAD_RSEQ : KYMO_PAD_LIVE);
			for (unsigned int i = 0; i < 128; i++)
				sees_nothing(&site, stack, i);
			set_locks(&world, 0, world.n_rings, 1);
		}
		set_locks(&world, 0, world.n_rings, 0);
		world.vforks->n = 1;
		for (unsigned int i = 0; i < 256; i++) {
			world.vforks->threads[14] = i < 128 ? 0 : (uint64_t)__builtin_thread_pointer();
			sees_nothing(&site, stack, i);
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- what is in a record ----------------------------------------------------------------------------------------- */

static void every_register_is_recorded_in_every_type(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct registers in, out;

		world_init(&world, kind, roomy);
		for (int reg = 0; reg <= REG_FLAGS; reg++) {
			struct kymo_fetch args[KYMO_N_TYPES];
			struct kymo_pad_event events[] = { { 300, args, 8 }, { 301, args + 8, KYMO_N_TYPES - 8 } };
			struct site site;
			uint64_t expected;

			for (unsigned int t = 0; t < KYMO_N_TYPES; t++)
				args[t] = (struct kymo_fetch){ KYMO_FETCH_REGISTER, (enum kymo_type)t, reg };
			world_landing(&world, events, 2, &site);
			randomise(&in, (uint64_t)reg + 77, stack);
			in.flags = 0x202 | DF | CF | 0x80;
			enter(&site, &in, &out);
			expected = reg < 16 ? in.r[reg] : reg == REG_IP ? site.address : in.flags;
			world_read_all(&world);
			assert_int_equal(world.records.n, 2);
			for (unsigned int t = 0, at = 0; t < KYMO_N_TYPES; t++) {
				unsigned int size = kymo_type_size((enum kymo_type)t);

				at = t == 8 ? 0 : at;
				assert_int_equal(value(&world.records.items[t / 8], at, size), cut(expected, size));
				at += size;
			}
			assert_int_equal(world.records.items[0].id, 300);
			assert_int_equal(world.records.items[1].id, 301);
			assert_int_equal(world.records.items[1].tid, gettid());
			world_forget(&world);
		}
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void arguments_immediates_and_the_stack_pointer_are_recorded(void **state)
{
	static const struct kymo_fetch args[] = {
		{ KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1 },  { KYMO_FETCH_ARGUMENT, KYMO_TYPE_U32, 2 },
		{ KYMO_FETCH_ARGUMENT, KYMO_TYPE_U16, 3 },  { KYMO_FETCH_ARGUMENT, KYMO_TYPE_U8, 4 },
		{ KYMO_FETCH_ARGUMENT, KYMO_TYPE_S64, 5 },  { KYMO_FETCH_ARGUMENT, KYMO_TYPE_X64, 6 },
		{ KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 7 },  { KYMO_FETCH_ARGUMENT, KYMO_TYPE_S32, 9 },
		{ KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S8, -2 }, { KYMO_FETCH_IMMEDIATE, KYMO_TYPE_S64, INT64_MIN },
		{ KYMO_FETCH_IMMEDIATE, KYMO_TYPE_X32, 0xfedcba98 }, { KYMO_FETCH_STACK_POINTER, KYMO_TYPE_X64, 0 },
	};
	struct kymo_pad_event events[] = { { 7, args, 8 }, { KYMO_EVENT_ID_MAX, args + 8, 4 } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		static const unsigned int sizes[] = { 8, 4, 2, 1, 8, 8, 8, 4 }, registers[] = { 7, 6, 2, 1, 8, 9 };
		const struct record *record;
		struct registers in, out;
		struct world world;
		struct site site;
		unsigned int at = 1;

		world_init(&world, kind, roomy);
		events[1].id = 511;
		world_landing(&world, events, 2, &site);
		randomise(&in, 5, stack);
		for (unsigned int i = 0; i < 512; i++)
			stack[STACK_SIZE / 2 + i] = (uint8_t)mix(i);
		enter(&site, &in, &out);
		world_read_all(&world);
		assert_int_equal(world.records.n, 2);
		record = &world.records.items[0];
		assert_int_equal(record->args[0], 0);
		for (unsigned int i = 0; i < 8; i++, at += sizes[i - 1]) {
			uint64_t expected;

			if (i < 6)
				expected = in.r[registers[i]];
			else
				memcpy(&expected, (uint8_t *)in.r[RSP] + (i == 6 ? 8 : 24), 8);
			assert_int_equal(value(record, at, sizes[i]), cut(expected, sizes[i]));
		}
		assert_int_equal(at, record->size);
		record++;
		assert_int_equal(record->size, 1 + 8 + 4 + 8);
		assert_int_equal(value(record, 0, 1), 0xfe);
		assert_int_equal(value(record, 1, 8), UINT64_C(1) << 63);
		assert_int_equal(value(record, 9, 4), 0xfedcba98);
		assert_int_equal(value(record, 13, 8), in.r[RSP]);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* Stack words at a stack pointer `below` bytes below the end of what can be read. */
static void check_stack(struct world *world, const struct site *site, const struct kymo_fetch *args,
			uint8_t *end, uint64_t below, bool whole)
{
	struct registers in, out;
	const struct record *record;

	randomise(&in, 1, end - STACK_SIZE);
	in.r[RSP] = (uint64_t)end - below;
	enter(site, &in, &out);
	world_read_all(world);
	assert_int_equal(world->records.n, 1);
	record = &world->records.items[0];
	for (unsigned int i = 0; i < 8; i++) {
		uint64_t first = in.r[RSP] + 8u * (uint64_t)args[i].value, last = first + 7, expected = 0;
		bool same_page = (in.r[RSP] & ~(uint64_t)(PAGE - 1)) == (last & ~(uint64_t)(PAGE - 1));
		bool is_fine = same_page || (whole && last < (uint64_t)end);

		assert_int_equal(record->args[0] >> i & 1, !is_fine);
		if (is_fine)
			memcpy(&expected, (void *)first, 8);
		assert_int_equal(value(record, 1 + 8 * i, 8), expected);
	}
	world_forget(world);
}

static void a_stack_word_that_may_not_be_there_is_a_fault_bit(void **state)
{
	static const uint64_t below[] = { 8, 12, 16, 60, 64, 68, 2048, 2052, PAGE, PAGE + 4, PAGE + 8, 3 * PAGE + 20 };
	static const int64_t words[] = { 0, 1, 7, 8, 31, 32, 254, 255 };
	struct kymo_fetch args[8];
	uint8_t *stack = stack_create();

	for (unsigned int i = 0; i < 8; i++)
		args[i] = (struct kymo_fetch){ KYMO_FETCH_STACK, KYMO_TYPE_X64, words[i] };
	for (unsigned int i = 0; i < STACK_SIZE; i++)
		stack[i] = (uint8_t)mix(i);
	for_each_kind(kind)
	{
		for (unsigned int whole = 0; whole < 2; whole++) {
			struct kymo_pad_event event = { 9, args, 8 };
			struct world world;
			struct site site;

			world_init(&world, kind, roomy);
			world.env.stack_low = whole ? (uint64_t)stack : 0;
			world.env.stack_high = whole ? (uint64_t)stack + STACK_SIZE : 0;
			world_landing(&world, &event, 1, &site);
			for (size_t i = 0; i < kymo_countof(below); i++)
				check_stack(&world, &site, args, stack + STACK_SIZE, below[i], whole);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void sixteen_events_at_one_site_are_recorded_in_order(void **state)
{
	for_each_kind(kind)
	{
		struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
		struct kymo_fetch args[KYMO_PAD_MAX_EVENTS];
		cpu_set_t before;
		struct world world;
		struct site site;

		for (unsigned int i = 0; i < KYMO_PAD_MAX_EVENTS; i++) {
			args[i] = (struct kymo_fetch){ KYMO_FETCH_IMMEDIATE, KYMO_TYPE_U16, 1000 + i };
			events[i] = (struct kymo_pad_event){ 100 + i, &args[i], i % 2 };
		}
		world_init(&world, kind, roomy);
		stay(&before);
		world_function(&world, events, KYMO_PAD_MAX_EVENTS, &site);
		for (unsigned int i = 0; i < 100; i++)
			call(&site, i);
		leave(&before);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1600);
		for (unsigned int i = 0; i < 1600; i++) {
			assert_int_equal(world.records.items[i].id, 100 + i % 16);
			if (i % 2)
				assert_int_equal(value(&world.records.items[i], 0, 2), 1000 + i % 16);
		}
		world_deinit(&world);
	}
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

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
		assert_int_equal(kept, 2 * (PAGE / 20));
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
		assert_int_equal(world.records.n, 2 * (PAGE / 20) + 5000 % (PAGE / 20));
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

/* ---- what kind of process this is -------------------------------------------------------------------------------- */

static void the_state_tells_who_is_recorded(void **state)
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
			assert_int_equal(world.records.items[0].tid, is_early ? (int32_t)world.env.pid : gettid());
			assert_int_equal(world.records.items[0].ring < world.n_sequenced, byte == KYMO_PAD_RSEQ);
			world_forget(&world);
		}
		world_deinit(&world);
	}
}

static void a_forked_child_records_nothing(void **state)
{
	for_each_kind(kind)
	{
		struct world world;
		struct site site;
		int status;
		pid_t pid;

		world_init(&world, kind, roomy);
		world_function(&world, &one_event, 1, &site);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			call(&site, 1);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		call(&site, 2);
		world_read_all(&world);
		assert_int_equal(world.records.n, 1);
		assert_int_equal(value(&world.records.items[0], 0, 8), 2);
		world_deinit(&world);
	}
}

/* Threads do not fail by assertions: those leave by longjmp(). */
static uint32_t call_in_thread(const struct site *site, uint64_t x)
{
	return ((uint32_t(*)(uint64_t))site->address)(x);
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

/* ---- signals ----------------------------------------------------------------------------------------------------- */

#define N_THREADS 4
#define MAX_CALLS 100000u
#define ENOUGH_SIGNALS 60u
#define IN_HANDLER (UINT64_C(1) << 32)

struct producer {
	const struct site *site;
	pthread_t thread;
	pid_t tid;
	timer_t timer;
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
	struct itimerspec every = { { 0, 200000 }, { 0, 200000 } }, never = { 0 };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct producer *me = data;

	producer = me;
	me->tid = gettid();
	event._sigev_un._tid = me->tid;
	if (timer_create(CLOCK_MONOTONIC, &event, &me->timer) || timer_settime(me->timer, 0, &every, NULL)) {
		me->is_wrong = true;
		return NULL;
	}
	while (me->n_calls < MAX_CALLS && me->n_handled < ENOUGH_SIGNALS) {
		uint64_t x = me->n_calls++;

		if (call_in_thread(me->site, x) != (uint32_t)(2 * x + 7) || own_rseq_cs())
			me->is_wrong = true;
		__builtin_ia32_pause();
	}
	timer_settime(me->timer, 0, &never, NULL);
	timer_delete(me->timer);
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
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART }, before;

	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
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
	sigaction(SIGUSR1, &before, NULL);
}

/* A breakpoint in the pad, and its handler, which runs the same pad. */
static struct {
	struct world *world;
	const struct site *site;
	uint64_t address;
	uint8_t original;
	unsigned int hits, restarts;
	bool is_wrong;
} breakpoint;

static void set_breakpoint(uint64_t address)
{
	static const uint8_t int3 = 0xcc;

	breakpoint.address = address;
	breakpoint.original = *(uint8_t *)address;
	world_write(breakpoint.world, address, &int3, 1);
}

static void on_breakpoint(int signal, siginfo_t *info, void *data)
{
	greg_t *ip = &((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP];

	world_write(breakpoint.world, breakpoint.address, &breakpoint.original, 1);
	breakpoint.hits++;
	/* Within a sequence the kernel has moved it to the abort handler already. */
	if ((uint64_t)*ip == breakpoint.address + 1)
		*ip = (greg_t)breakpoint.address;
	else
		breakpoint.restarts++;
	if (call_in_thread(breakpoint.site, 1000) != 2007)
		breakpoint.is_wrong = true;
}

/* Break at each instruction from the pad's entry to its jump back. Returns how many were reached. */
static unsigned int break_everywhere(struct world *world, const struct site *site, const struct site *in_handler,
				     uint8_t *stack)
{
	uint64_t at = site->pad + kymo_pad_entry(&world->env, 1), end = site->pad + site->insn_at[0];
	unsigned int reached = 0;
	char text[128];

	breakpoint.world = world;
	breakpoint.site = in_handler;
	while (at < end) {
		int length = kymo_disassemble((uint8_t *)at, end - at, at, text, sizeof(text));
		uint64_t sum = 0;

		assert_true(length > 0);
		breakpoint.hits = 0;
		set_breakpoint(at);
		sees_nothing(site, stack, at);
		world_write(world, at, &breakpoint.original, 1);
		assert_true(breakpoint.hits <= 1);
		assert_false(breakpoint.is_wrong);
		reached += breakpoint.hits;
		world_read_all(world);
		assert_int_equal(world->records.n, 1 + breakpoint.hits);
		for (size_t i = 0; i < world->records.n; i++)
			sum += value(&world->records.items[i], 0, 8);
		assert_int_equal(sum, mix(at * 16 + 7) + (breakpoint.hits ? 1000 : 0));
		assert_int_equal(world_lost(world), 0);
		world_forget(world);
		at += (uint64_t)length;
	}
	return reached;
}

static void a_handler_between_any_two_instructions_loses_and_tears_nothing(void **state)
{
	struct sigaction action = { .sa_sigaction = on_breakpoint, .sa_flags = SA_SIGINFO }, before;
	uint8_t *stack = stack_create();

	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	for_each_kind(kind)
	{
		struct world world;
		struct site site, in_handler;

		breakpoint.restarts = 0;
		world_init(&world, kind, roomy);
		world_landing(&world, &one_event, 1, &site);
		world_function(&world, &one_event, 1, &in_handler);
		assert_true(break_everywhere(&world, &site, &in_handler, stack) > 25);
		assert_true(kind == LOCKS ? !breakpoint.restarts : breakpoint.restarts > 10);
		world_deinit(&world);
	}
	sigaction(SIGTRAP, &before, NULL);
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_flags_vectors_and_the_red_zone_survive),
		cmocka_unit_test(so_they_do_on_every_slow_path),
		cmocka_unit_test(every_register_is_recorded_in_every_type),
		cmocka_unit_test(arguments_immediates_and_the_stack_pointer_are_recorded),
		cmocka_unit_test(a_stack_word_that_may_not_be_there_is_a_fault_bit),
		cmocka_unit_test(sixteen_events_at_one_site_are_recorded_in_order),
		cmocka_unit_test(no_record_is_lost_while_the_reader_keeps_up),
		cmocka_unit_test(what_does_not_fit_is_counted_as_lost),
		cmocka_unit_test(overwriting_keeps_the_newest),
		cmocka_unit_test(under_a_lock_a_stamp_is_raised_to_the_last_one),
		cmocka_unit_test(a_taken_lock_sends_the_record_to_another_ring),
		cmocka_unit_test(while_a_sequences_ring_is_changed_a_ring_with_a_lock_is_used),
		cmocka_unit_test(a_lock_does_not_stop_a_sequence_with_room),
		cmocka_unit_test(the_recorder_closes_a_sequences_ring_on_its_cpu_only),
		cmocka_unit_test(the_state_tells_who_is_recorded),
		cmocka_unit_test(a_forked_child_records_nothing),
		cmocka_unit_test(a_thread_without_sequences_uses_a_ring_with_a_lock),
		cmocka_unit_test(threads_and_their_signal_handlers_lose_and_tear_nothing),
		cmocka_unit_test(a_handler_between_any_two_instructions_loses_and_tears_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
