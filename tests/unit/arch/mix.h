/* A hash, for what looks like chance. */
#ifndef KYMO_TESTS_ARCH_MIX_H
#define KYMO_TESTS_ARCH_MIX_H

#include <stdint.h>

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

#endif
