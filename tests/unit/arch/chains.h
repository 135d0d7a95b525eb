/* Pads that follow frame pointers: what their records are to have. Include after cmocka.h. */
#ifndef KYMO_TESTS_ARCH_CHAINS_H
#define KYMO_TESTS_ARCH_CHAINS_H

#include "stack_records.h"

#define RBP 5
#define LIMIT 16
#define RETURN UINT64_C(0x7ff012345000) /* the first return address of a chain that put_chain() makes */

static const struct kymo_fetch with_chain[] = {
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
	{ .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_BYTES, .limit = LIMIT },
};
static const struct kymo_pad_event one_chain = { .id = 1, .args = with_chain, .n_args = 2 };

/* What a record is to have. */
struct expected {
	struct kymo_wire_chain head;
	uint64_t returns[KYMO_WIRE_CHAIN_MAX];
	size_t n;
};

static inline uint64_t word_at(uint64_t address)
{
	uint64_t ret;

	memcpy(&ret, (const void *)(uintptr_t)address, sizeof(ret));
	return ret;
}

static inline void put_word(uint64_t address, uint64_t value)
{
	memcpy((void *)(uintptr_t)address, &value, sizeof(value));
}

/* As chain.c has the rule, of memory that can be read up to `end`. */
static inline void expect(struct expected *ret, uint64_t pc, uint64_t sp, uint64_t bp, uint64_t end, size_t limit)
{
	uint64_t least = sp;

	memset(ret, 0, sizeof(*ret));
	ret->head.at = (struct kymo_wire_stack){ pc, sp, bp };
	for (size_t i = 0; i < 2; i++)
		if (sp + 8 * i + 8 <= end)
			ret->head.words[i] = word_at(sp + 8 * i);
	for (uint64_t at = bp; ret->n < limit && at >= least && at <= end - 16 && at % 8 == 0; at = word_at(at)) {
		ret->returns[ret->n++] = word_at(at + 8);
		least = at + 1;
	}
}

/* Behind the values before it. */
static inline void check_stored(const struct last *last, size_t at, const struct expected *expected)
{
	uint16_t size;

	memcpy(&size, last->bytes + at, sizeof(size));
	assert_int_equal(size, sizeof(expected->head) + 8 * expected->n);
	assert_int_equal(last->size, at + sizeof(size) + size);
	at += sizeof(size);
	assert_memory_equal(last->bytes + at, &expected->head, sizeof(expected->head));
	assert_memory_equal(last->bytes + at + sizeof(expected->head), expected->returns, 8 * expected->n);
}

/* The program's stack and registers are as before; near the end of a stack there is less of it than AROUND. */
static inline void enter_near(const struct site *site, const struct registers *in, uint64_t end)
{
	const uint8_t *around = (const uint8_t *)in->r[RSP] - RED_ZONE;
	const size_t size = end - (uint64_t)around < AROUND ? end - (uint64_t)around : AROUND;
	uint8_t before[AROUND];
	struct registers out;

	memcpy(before, around, size);
	enter(site, in, &out);
	check_unchanged(in, &out);
	assert_memory_equal(out.vectors, in->vectors, sizeof(in->vectors));
	assert_memory_equal(around, before, size);
}

/* `n` frames of `size` bytes from `at` on; the last one leads to 0. */
static inline void put_chain(uint64_t at, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++) {
		put_word(at + i * size, i + 1 < n ? at + (i + 1) * size : 0);
		put_word(at + i * size + 8, RETURN + i);
	}
}

#endif
