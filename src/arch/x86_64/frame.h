/* What the files that write pads share: the frame, and records' arguments. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_FRAME_H
#define KYMO_ARCH_X86_64_FRAME_H

#include "arch/pad.h"
#include "arch/x86_64/code.h"

/* The pad's frame below the red zone. */
enum {
	SLOT_RDX = 0,
	SLOT_RAX = 8,
	SLOT_R10 = 16,
	SLOT_R11 = 24,
	SLOT_FLAGS = 32,  /* ax as lahf and seto left it */
	SLOT_WRITES = 34, /* a byte, in what seto left: enum x86_writes; of an event that writes */
	SLOT_TID = 36,
	SLOT_RFLAGS = 40, /* whole, only where an argument wants them */
	SLOT_TSC = 48,    /* the stamp of the record before this one, of this pad or of the one that it comes behind; 0:
			     none */
	FRAME = 128 + 56,

	/* In the frame's own red zone, which signal handlers step over: for as long as nothing is called. */
	BELOW_RING = -8,
	BELOW_VALUES = -8, /* of a form: the first but one of its values, others below it; the last is in rax */
	BELOW_WANTED = BELOW_VALUES, /* what KYMO_FORM_WANT leaves */
	BELOW_CHAIN = -16,           /* where a chain begins, when forms have had their values */
	BELOW_CHAIN_END = -24,       /* and ends at most */
	BELOW_DIVISOR = -8 * (KYMO_FORM_DEPTH_MAX + 1),

	/* Of an event that reads memory: the stack pointer is lower then, so that what is called keeps these. */
	BELOW_LOADED = BELOW_DIVISOR - 8,       /* where a read of one value puts it */
	BELOW_COPY_SIZE = BELOW_LOADED,         /* bytes of the stack to be copied, when everything else is read */
	BELOW_COMPOSED_SIZE = BELOW_LOADED - 8, /* bytes of what is composed */
	BELOW_COMPOSED = BELOW_COMPOSED_SIZE,   /* that ends here */
};

_Static_assert(BELOW_COMPOSED >= -128, "within the red zone as long as nothing is composed");

/* Where a pad's site is. */
struct x86_pad_site {
	uint64_t address;    /* runtime */
	uint64_t bias;       /* of its module: runtime address - vaddr */
	uint64_t file;       /* address - its offset in the file */
	bool loads_directly; /* a tracer takes the faults of forms */
};

/* Where the frame has a general register, or -1: it is as the program left it. */
int32_t x86_slot_of(unsigned int reg);

/* mov what the program has in `reg`, a general register, to `to`. */
void x86_load_saved(struct code *c, unsigned int to, unsigned int reg);

/* A jump to `fault` unless the `size` bytes at rax can be read for certain. rdx is changed. */
void x86_check_readable(struct code *c, const struct kymo_pad_env *env, unsigned int size, struct label *fault);

/* rax = the `size` bytes at rax, with zeros before them; no byte more is read. */
void x86_load_bytes(struct code *c, unsigned int size);

#endif
