/* The entry map of a module: what is known of each byte of its text. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_MAP_H
#define KYMO_ARCH_X86_64_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"

/* A text section in the map. Bit `base` of each bitmap stands for its first byte. */
struct x86_area {
	struct kymo_span span;
	uint64_t base;
};

#define X86_SEVERAL UINT32_MAX

/* What is known about a function besides its extent; kept in the order of kymo_module_code.functions. */
struct x86_function {
	uint64_t bad;      /* where it does not decode, or where it is entered inside of an instruction; 0: nowhere */
	uint64_t computed; /* an indirect jump that may lead anywhere into it; 0: none */
	uint64_t own_address; /* an instruction that takes an address inside of the function itself; 0: none */
	uint32_t n_tables;    /* jump tables whose address it takes */
	uint32_t jumped_from; /* 1 + the index of the only other function that jumps into it; 0: none; or X86_SEVERAL */
	uint32_t entered_from; /* the same, of jumps and calls to after its start */
	bool called;           /* or its address taken by another function */
	bool decodes;          /* false: `bad` is where it does not */
};

/* What a function that runs on a small stack does with it. */
struct x86_stack {
	uint64_t passed, fails; /* after its look at the limit, and where that leads when there is too little; 0: it
				   does not look */
	uint16_t depth;         /* how far below a limit that was kept its return address may lie */
	uint16_t taken;         /* at the most, by all of it, or by what is from `fails` on */
	bool begins_anew;       /* something in it jumps to its start */
};

/* One bit for each byte of text. entries.c tells what each means and why that many are needed. */
enum x86_bitmap {
	X86_KNOWN,
	X86_FIRM,
	X86_LIKELY,
	X86_SCANNED,
	X86_STARTS,
	X86_STOPS,
	X86_READ,
	X86_ENTERED,
	X86_N_BITMAPS,
};

struct kymo_entry_map {
	struct x86_area *areas;  /* sorted by address, not overlapping */
	size_t n_areas, largest; /* index of that area */
	uint64_t low, high;      /* of all areas */
	struct x86_function *functions;
	struct x86_stack *stacks;          /* as `functions`; NULL where all stacks are large */
	const struct kymo_extent *extents; /* of the functions; the caller's */
	size_t n_functions;
	uint64_t *tables; /* addresses of jump tables that a jump was seen to use, sorted */
	size_t n_tables;
	void *packed; /* of kymo_large_alloc(): all of these arrays are in it; NULL: each is of malloc() */
	size_t packed_size;
	uint64_t n_bits;
	uint64_t *bits[X86_N_BITMAPS];
};

#endif
