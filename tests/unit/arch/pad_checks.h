/*
 * What the tests of pads share. Each test is run for both kinds of pad, if restartable sequences are available. Include
 * after cmocka.h.
 */
#ifndef KYMO_TESTS_ARCH_PAD_CHECKS_H
#define KYMO_TESTS_ARCH_PAD_CHECKS_H

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fetches.h"
#include "pads.h"

#define PAGE 4096u
#define CF 0x1u
#define DF 0x400u
#define ARITHMETIC 0x8d5u
#define RSP 4
#define REG_IP 16
#define REG_FLAGS 17
#define RED_ZONE 128
#define AROUND (RED_ZONE + 512) /* bytes that are compared: the red zone, and what lies above the stack pointer */

static const struct shape roomy = { 65536, 4, false };
static const struct shape tiny = { PAGE, 2, false };

#define for_each_kind(kind) \
	for (enum kind kind = LOCKS; kind < N_KINDS; kind++) \
		if (!is_possible(kind)) \
			print_message("no sequences: this C library has none\n"); \
		else

static const struct kymo_fetch first_u64 = FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1);
static const struct kymo_pad_event one_event = { .id = 1, .args = &first_u64, .n_args = 1 };

static inline uint64_t value(const struct record *record, size_t at, unsigned int size)
{
	uint64_t ret = 0;

	assert_true(at + size <= record->size && at + size <= sizeof(record->args));
	memcpy(&ret, record->args + at, size);
	return ret;
}

static inline uint64_t cut(uint64_t x, unsigned int size)
{
	return size == 8 ? x : x & ((UINT64_C(1) << 8 * size) - 1);
}

static inline void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)mix(seed + i);
}

/* On the CPU where it is, so that one ring gets everything. */
static inline unsigned int stay(cpu_set_t *before)
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

static inline void leave(const cpu_set_t *before)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*before), before), 0);
}

/* ---- the program sees nothing ---------------------------------------------------------------- */

static inline void randomise(struct registers *in, uint64_t seed, const uint8_t *stack)
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
static inline uint64_t flags_of(unsigned int n)
{
	static const uint32_t bits[] = { 0x1, 0x4, 0x10, 0x40, 0x80, 0x800, DF };
	uint64_t flags = 0x202;

	for (size_t i = 0; i < kymo_countof(bits); i++)
		flags |= n >> i & 1 ? bits[i] : 0;
	return flags;
}

/* General registers, the arithmetic flags and DF. */
static inline void check_unchanged(const struct registers *in, const struct registers *out)
{
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(out->r[i], in->r[i]);
	assert_int_equal(out->flags & (ARITHMETIC | DF), in->flags & (ARITHMETIC | DF));
}

/* Enter; all registers, the arithmetic flags, DF, vectors, the red zone and what is above it are as before. */
static inline void enter_unseen(const struct site *site, const struct registers *in)
{
	const uint8_t *around = (const uint8_t *)in->r[RSP] - RED_ZONE;
	uint8_t before[AROUND];
	struct registers out;

	memcpy(before, around, sizeof(before));
	enter(site, in, &out);
	check_unchanged(in, &out);
	assert_memory_equal(out.vectors, in->vectors, sizeof(in->vectors));
	assert_memory_equal(out.masks, in->masks, sizeof(in->masks));
	assert_memory_equal(around, before, sizeof(before));
}

static inline void sees_nothing(const struct site *site, uint8_t *stack, uint64_t seed)
{
	struct registers in;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	fill((uint8_t *)in.r[RSP] - RED_ZONE, AROUND, seed);
	enter_unseen(site, &in);
}

/* ---- rings ----------------------------------------------------------------------------------- */

static inline void set_locks(const struct world *world, uint32_t first, uint32_t n, uint32_t value_)
{
	for (uint32_t i = first; i < first + n; i++)
		world_ring(world, i)->lock = value_;
}

/*
 * Each slow path of the pad at `site`, in a world of tiny rings: `pass` goes through it, with seeds up to `n` or twice
 * that and, where a payload is recorded, its size.
 */
static inline void pass_slow_paths(struct world *world, const struct site *site, uint8_t *stack, uint64_t n,
				   void (*pass)(const struct site *site, uint8_t *stack, uint64_t seed, uint64_t size))
{
	static const uint8_t states[] = { 0, KYMO_PAD_EARLY, KYMO_PAD_LIVE, 0x33 };

	for (uint64_t i = 0; i < 512; i++) /* changes the sub-buffer, then loses */
		pass(site, stack, i, i);
	assert_true(world_lost(world) > 0);
	for (size_t s = 0; s < kymo_countof(states); s++) {
		world_state(world, states[s]);
		for (uint64_t i = 0; i < n; i++)
			pass(site, stack, i, i * 17);
	}
	set_locks(world, 0, world->n_rings - 1, 1);
	for (unsigned int k = 0; k < 2; k++) {
		world_state(world, world->kind == SEQUENCES ? KYMO_PAD_RSEQ : KYMO_PAD_LIVE);
		for (uint64_t i = 0; i < n; i++)
			pass(site, stack, i, i * 17);
		set_locks(world, 0, world->n_rings, 1);
	}
	set_locks(world, 0, world->n_rings, 0);
	world->vforks->n = 1;
	for (uint64_t i = 0; i < 2 * n; i++) {
		world->vforks->threads[14] = i < n ? 0 : (uint64_t)__builtin_thread_pointer();
		pass(site, stack, i, i * 9);
	}
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* `act` in a forked child, which ends well. */
static inline void in_child(const struct site *site, uint8_t *stack,
			    void (*act)(const struct site *site, uint8_t *stack))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		act(site, stack);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Threads do not fail by assertions: those leave by longjmp(). */
static inline uint32_t call_in_thread(const struct site *site, uint64_t x)
{
	return ((uint32_t(*)(uint64_t))site->address)(x);
}

/* No pad is made of an event with these arguments. */
static inline void check_refused(const struct kymo_fetch *args, size_t n_args)
{
	const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = n_args };
	const struct kymo_pad_env env = { .guest = 0x1000 };
	const struct kymo_pad_chain chain = { .next = 0 };
	const struct kymo_plan plan = { .n_insns = 0 };
	struct kymo_pad_layout layout;
	uint8_t out[8192];

	assert_int_equal(kymo_pad_emit(&env, &plan, 0x2000, 0x4000, &event, 1, &chain, out, sizeof(out), &layout), -22);
}

#endif
