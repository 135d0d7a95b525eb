/*
 * What the tests of payloads share. Include after cmocka.h.
 */
#ifndef KYMO_TESTS_ARCH_PAYLOAD_CHECKS_H
#define KYMO_TESTS_ARCH_PAYLOAD_CHECKS_H

#include "pad_checks.h"

#define R10 10
#define R11 11
#define ID 7
#define HEADER KYMO_PACKED_COMPACT_SIZE /* of its records */

static const struct kymo_fetch as_markers[] = { PAYLOAD(R10, R11) };
static const struct kymo_pad_event one_payload = { .id = ID, .args = as_markers, .n_args = 1 };

/* Enter with a payload in two registers, unseen. */
static inline void enter_with(const struct site *site, uint8_t *stack, unsigned int address, const uint8_t *bytes,
			      unsigned int size_in, uint64_t size, uint64_t seed)
{
	struct registers in;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	in.r[address] = (uint64_t)bytes;
	in.r[size_in] = size;
	fill((uint8_t *)in.r[RSP] - RED_ZONE, RED_ZONE, seed);
	enter_unseen(site, &in);
}

#endif
