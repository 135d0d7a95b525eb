/*
 * How much of the processor's state call_x86_64.S saves, and with which instruction. Intel SDM vol. 1, 13.4 and 13.10:
 * the compacted format has the components that are asked for one after the other, each at its size and alignment of
 * CPUID leaf 0xd.
 */
#if defined(__x86_64__) && defined(__LP64__)
#include <cpuid.h>
#include <stdint.h>

#include "state_x86_64.h"

#define LEGACY_SIZE 512 /* FXSAVE's area, which all begin with */
#define HEADER_SIZE 64
#define CPUID1_ECX_OSXSAVE (1u << 27)
#define CPUID0D_1_EAX_XSAVEC (1u << 1)
#define COMPONENT_IS_ALIGNED (1u << 1)

/*
 * x87, SSE, AVX, the three of AVX-512, and APX's general registers. Not: MPX, which compilers have forgotten; the
 * protection key, which a probe may change; AMX's tiles, which no C code uses that did not ask for it.
 */
#define WANTED ((1u << 0) | (1u << 1) | (1u << 2) | (1u << 5) | (1u << 6) | (1u << 7) | (1u << 19))

uint64_t kymo_lib_state_size = LEGACY_SIZE;
uint32_t kymo_lib_state_mask = 3;
uint32_t kymo_lib_state_how = KYMO_LIB_FXSAVE;

static uint32_t enabled_components(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* Bytes of the compacted format for the components of `mask`. */
static uint64_t compacted_size(uint32_t mask)
{
	uint64_t size = LEGACY_SIZE + HEADER_SIZE;

	for (unsigned int i = 2; i < 32; i++) {
		unsigned int bytes, offset, flags, reserved;
		if (!(mask >> i & 1))
			continue;
		__cpuid_count(0xd, i, bytes, offset, flags, reserved);
		if (flags & COMPONENT_IS_ALIGNED)
			size = (size + 63) & ~UINT64_C(63);
		size += bytes;
	}
	return size;
}

/* As early as it can be: other constructors pass markers. */
__attribute__((constructor(101))) static void ask_processor(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & CPUID1_ECX_OSXSAVE) || __get_cpuid_max(0, NULL) < 0xd)
		return;
	uint32_t mask = enabled_components() & WANTED;
	__cpuid_count(0xd, 1, a, b, c, d);
	if (a & CPUID0D_1_EAX_XSAVEC) {
		kymo_lib_state_size = compacted_size(mask);
		kymo_lib_state_how = KYMO_LIB_XSAVEC;
	} else {
		__cpuid_count(0xd, 0, a, b, c, d);
		kymo_lib_state_size = b; /* of all that is enabled, in the standard format */
		kymo_lib_state_how = KYMO_LIB_XSAVE;
	}
	kymo_lib_state_mask = mask;
}
#endif
