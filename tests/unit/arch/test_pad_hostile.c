/*
 * What pads promise, by running them: whatever the words of a ring say, and whenever they change, each store stays
 * within that ring, and the program goes on. The rings lie in a large reserved area, of which only what is touched
 * exists: a page that is there and is no ring's was written to by a pad.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "pad_checks.h"
#include "arch/syscall_pad.h"

#define GAP (4 * (uint64_t)PAGE)
#define RESERVE (UINT64_C(1) << 30)
#define N_WORDS (128 / 4) /* of a control block, before what is known of sub-buffers */
#define N_HITS 30000u
#define STAMP_FAR (UINT64_C(1) << 62)

enum what { VALUES, PAYLOADS, CHAINS, CALLS, N_WHATS };

static const struct kymo_fetch payload = PAYLOAD(6, 2); /* rsi, rdx */
static const struct kymo_pad_event payload_event = { .id = 1, .args = &payload, .n_args = 1 };

static const struct kymo_fetch chain = { .kind = KYMO_FETCH_CHAIN,
					 .type = KYMO_TYPE_BYTES,
					 .limit = KYMO_WIRE_CHAIN_MAX };
static const struct kymo_pad_event chain_event = { .id = 1, .args = &chain, .n_args = 1 };

struct hostile {
	struct world world;
	uint64_t frames[2 * KYMO_WIRE_CHAIN_MAX + 2]; /* on the stack, above those of the functions that hit */
	enum what what;
	struct site site;
	uint32_t (*hit)(uint64_t x, const uint8_t *bytes, uint64_t size);
	volatile bool is_over;
};

/* ---- what is hit ----------------------------------------------------------------------------- */

/* A function that makes the call getpid() in the pad of a system call, as the jump in its place would. */
static void put_syscall(struct hostile *hostile)
{
	static const uint8_t original[] = { 0x0f, 0x05, 0xc3 }; /* syscall; ret */
	struct kymo_plan plan = { .tactic = KYMO_TACTIC_JUMP, .window = 2, .n_insns = 1, .insn_offset = { 0, 2 } };
	struct kymo_pad_syscalls syscalls = { .first_id = 1000, .exit_id = 999 };
	uint8_t *pad = malloc(kymo_pad_size_max(NULL, 1)),
		stub[10] = { 0xb8, SYS_getpid }; /* mov $SYS_getpid,%eax; jmp */
	struct kymo_pad_layout layout;
	uint64_t site, address, at;

	assert_non_null(pad);
	memset(syscalls.wanted, 0xff, sizeof(syscalls.wanted));
	memcpy(plan.original, original, 2);
	site = world_code(&hostile->world, original, sizeof(original));
	plan.vaddr = site;
	address = (uint64_t)hostile->world.code + (hostile->world.code_used + 31) / 32 * 32;
	assert_int_equal(kymo_pad_emit_syscall(&hostile->world.env, &plan, site, address, &syscalls, pad,
					       kymo_pad_size_max(NULL, 1), &layout),
			 0);
	assert_int_equal(world_code(&hostile->world, pad, layout.size), address);
	free(pad);
	at = world_code(&hostile->world, stub, sizeof(stub));
	assert_int_equal(kymo_encode_jump(at + 5, address + layout.entry, stub + 5), 0);
	world_write(&hostile->world, at, stub, sizeof(stub));
	hostile->hit = (uint32_t(*)(uint64_t, const uint8_t *, uint64_t))at;
}

static void hostile_init(struct hostile *hostile, enum kind kind, enum what what, bool is_overwriting)
{
	*hostile = (struct hostile){ .what = what };
	world_init_within(&hostile->world, kind, (struct shape){ 2 * PAGE, 4, is_overwriting }, GAP, RESERVE);
	if (what == CALLS) {
		put_syscall(hostile);
		return;
	}
	hostile->world.env.stack_low = (uint64_t)hostile - (64 << 10);
	hostile->world.env.stack_high = (uint64_t)(hostile + 1);
	world_function(&hostile->world,
		       what == PAYLOADS ? &payload_event
		       : what == CHAINS ? &chain_event
					: &one_event,
		       1, &hostile->site);
	hostile->hit = (uint32_t(*)(uint64_t, const uint8_t *, uint64_t))hostile->site.address;
}

/* With a frame pointer that leads through `n` frames. */
static uint32_t hit_below(struct hostile *hostile, uint64_t x, size_t n)
{
	uint64_t *frames = hostile->frames;
	void *function = (void *)(uintptr_t)hostile->hit;
	uint32_t ret;

	for (size_t i = 0; i <= n; i++)
		frames[2 * i] = i < n ? (uint64_t)(frames + 2 * i + 2) : 0;
	__asm__ volatile("lea -128(%%rsp), %%rsp\n push %%rbp\n mov %%rbx, %%rbp\n call *%%rcx\n"
			 "pop %%rbp\n lea 128(%%rsp), %%rsp"
			 : "=a"(ret), "+D"(x), "+c"(function)
			 : "b"(frames)
			 : "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return ret;
}

static void hit(struct hostile *hostile, uint64_t x)
{
	static const uint8_t bytes[KYMO_PAYLOAD_MAX];
	uint32_t result = hostile->what == CHAINS ? hit_below(hostile, x, mix(x) % (KYMO_WIRE_CHAIN_MAX + 1))
						  : hostile->hit(x, bytes, mix(x) % (sizeof(bytes) + 1));

	assert_int_equal(result, hostile->what == CALLS ? (uint32_t)getpid() : (uint32_t)(2 * x + 7));
	assert_int_equal(own_rseq_cs(), 0);
}

/* ---- what is looked at ----------------------------------------------------------------------- */

static bool is_rings(const struct world *world, uint64_t offset)
{
	uint64_t size = world->shape.subbuffer_size * world->shape.n_subbuffers;
	uint64_t controls = (world->n_rings * KYMO_WIRE_RING_STRIDE + PAGE - 1) / PAGE * PAGE;

	if (offset < world->reserve || offset >= world->reserve + world->shared_size)
		return false;
	offset -= world->reserve;
	if (offset < controls + GAP)
		return offset < controls;
	return (offset - controls - GAP) % (size + GAP) < size;
}

static void check_untouched(const struct world *world)
{
	size_t n = (world->shared_size + 2 * world->reserve) / PAGE;
	unsigned char *there = malloc(n);

	assert_non_null(there);
	assert_int_equal(mincore(world->around, n * PAGE, there), 0);
	for (size_t i = 0; i < n; i++)
		if (there[i] & 1 && !is_rings(world, i * PAGE))
			fail_msg("a pad has written %lld bytes from the first ring",
				 (long long)(i * PAGE - world->reserve));
	free(there);
}

/* The recorder's side: what it is given lies in the ring, and comes to an end. */
static void read_some(struct world *world)
{
	for (uint32_t i = 0; i < world->n_rings; i++) {
		const struct kymo_ring *ring = &world->readers[i];
		struct kymo_ring_packet packet;

		kymo_ring_finish(&world->readers[i], tsc());
		for (uint32_t k = 0; k < ring->n_subbuffers && kymo_ring_peek(&world->readers[i], &packet); k++) {
			uint64_t at = (uint64_t)(packet.records - ring->data);

			assert_true(at <= ring->subbuffer_size * (ring->n_subbuffers - 1) &&
				    packet.size <= ring->subbuffer_size);
			kymo_ring_release(&world->readers[i]);
		}
	}
}

/* ---- what is written ------------------------------------------------------------------------- */

static uint64_t chosen(const struct world *world, const struct kymo_wire_ring *ring, uint64_t random)
{
	const struct kymo_ring *reader =
		&world->readers[((const uint8_t *)ring - world->shared) / KYMO_WIRE_RING_STRIDE];
	uint64_t data = (uint64_t)(reader->data - (const uint8_t *)ring),
		 all = reader->subbuffer_size * reader->n_subbuffers;
	const uint64_t values[] = {
		0,
		1,
		2,
		3,
		4,
		5,
		16,
		17,
		1024,
		data,
		data - 1,
		data - 8,
		data - 64,
		data + 1,
		data + all,
		data + all - 1,
		data + all - 8,
		data + all - 20,
		data + all + 1,
		data + all + PAGE,
		data - PAGE,
		reader->subbuffer_size - 1,
		reader->subbuffer_size,
		reader->subbuffer_size + 1,
		all,
		2 * all,
		INT32_MAX,
		UINT64_C(1) << 31,
		UINT32_MAX,
		UINT64_C(1) << 32,
		INT64_MAX,
		UINT64_C(1) << 63,
		UINT64_MAX,
		UINT64_MAX - 8,
		UINT64_MAX - 19,
		UINT64_MAX - 20,
		UINT64_MAX - PAGE,
		tsc(),
		tsc() + 500,
		tsc() + STAMP_FAR,
		RESERVE / 2,
		UINT64_MAX - RESERVE / 2,
		mix(random) % RESERVE,
		-(mix(random) % RESERVE),
		mix(random),
		data + mix(random) % all,
	};

	return values[(random >> 32) % kymo_countof(values)];
}

static const size_t N_CHOSEN = 46;

static void put(struct kymo_wire_ring *ring, size_t word, uint64_t value_, bool is_whole)
{
	if (is_whole && word % 2 == 0)
		__atomic_store_n((uint64_t *)(void *)ring + word / 2, value_, __ATOMIC_RELAXED);
	else
		__atomic_store_n((uint32_t *)(void *)ring + word, (uint32_t)value_, __ATOMIC_RELAXED);
}

/* Positions far outside, with an end that lets them in: what an attacker writes first. */
static void aim(struct world *world, struct kymo_wire_ring *ring, uint64_t random)
{
	uint64_t at = chosen(world, ring, random);

	__atomic_store_n(&ring->cur, at, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->end, random & 1 ? at + 2 * PAGE : UINT64_MAX, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->data_offset, chosen(world, ring, mix(random + 1)), __ATOMIC_RELAXED);
}

static void *be_hostile(void *data)
{
	struct hostile *hostile = data;

	for (uint64_t i = 1; !hostile->is_over; i++) {
		uint64_t random = mix(i);
		struct kymo_wire_ring *ring = world_ring(&hostile->world, (uint32_t)(random % hostile->world.n_rings));

		if (random >> 40 & 3)
			put(ring, random >> 8 & (KYMO_WIRE_RING_STRIDE / 4 - 1),
			    chosen(&hostile->world, ring, mix(random)), random >> 50 & 1);
		else
			aim(&hostile->world, ring, mix(random));
	}
	return NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void each_word_may_say_anything_before_a_hit(void **state)
{
	for_each_kind(kind)
	{
		for (enum what what = VALUES; what < N_WHATS; what++) {
			struct hostile hostile;
			struct world *world = &hostile.world;

			hostile_init(&hostile, kind, what, what == CALLS);
			for (size_t word = 0; word < N_WORDS; word++) {
				for (uint64_t k = 0; k < N_CHOSEN; k++) {
					for (uint32_t i = 0; i < world->n_rings; i++)
						put(world_ring(world, i), word,
						    chosen(world, world_ring(world, i), k << 32 | word), true);
					hit(&hostile, k);
					hit(&hostile, k + 1);
					for (uint32_t i = 0; i < world->n_rings; i++)
						aim(world, world_ring(world, i), k << 32 | word);
					hit(&hostile, k);
					set_locks(world, 0, world->n_rings, 0);
				}
				read_some(world);
				check_untouched(world);
			}
			world_deinit(world);
		}
	}
}

static void each_word_may_change_during_hits(void **state)
{
	for_each_kind(kind)
	{
		for (enum what what = VALUES; what < N_WHATS; what++) {
			struct hostile hostile;
			pthread_t thread;

			hostile_init(&hostile, kind, what, what == PAYLOADS);
			assert_int_equal(pthread_create(&thread, NULL, be_hostile, &hostile), 0);
			for (uint64_t i = 0; i < N_HITS; i++) {
				hit(&hostile, i);
				if (i % 1000 == 0)
					read_some(&hostile.world);
				if (i % 50 == 0)
					set_locks(&hostile.world, 0, hostile.world.n_rings, 0);
			}
			hostile.is_over = true;
			assert_int_equal(pthread_join(thread, NULL), 0);
			check_untouched(&hostile.world);
			world_deinit(&hostile.world);
		}
	}
}

/* A forked child's rings are smaller than what the pads, which are its parent's, know. */
static void smaller_sub_buffers_are_used_as_they_are(void **state)
{
	for_each_kind(kind)
	{
		cpu_set_t before;
		struct world world;
		struct site site;

		world_init(&world, kind, (struct shape){ 2 * PAGE, 4, false });
		for (uint32_t i = 0; i < world.n_rings; i++) {
			struct kymo_wire_ring *ring = world_ring(&world, i);

			ring->subbuffer_size = PAGE;
			ring->n_subbuffers = 2;
			kymo_ring_init(&world.readers[i], ring, world.readers[i].data, PAGE, 2, false);
		}
		world_function(&world, &one_event, 1, &site);
		stay(&before);
		for (unsigned int i = 0; i < 1000; i++)
			call(&site, i);
		leave(&before);
		world_read_all(&world);
		assert_int_equal(world.records.n, 2 * RECORDS_OF(PAGE, 8));
		assert_int_equal(world.records.n + world_lost(&world), 1000);
		for (size_t i = 0; i < world.records.n; i++)
			assert_int_equal(value(&world.records.items[i], 0, 8), i);
		world_deinit(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_word_may_say_anything_before_a_hit),
		cmocka_unit_test(each_word_may_change_during_hits),
		cmocka_unit_test(smaller_sub_buffers_are_used_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
