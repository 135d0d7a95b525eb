/* Threads in pads. Where a thread in a pad that traps is to stand when a tracer looks at it. Whether a thread in a pad
 * with a chain has looked where it goes on. Public header of the room, beside code.h. */
#ifndef KYMO_ARCH_LEAVE_PAD_H
#define KYMO_ARCH_LEAVE_PAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

struct kymo_pad_layout;
struct kymo_plan;

/* Whether a pad that traps can be made of it, of which each thread can be brought out. */
bool kymo_pad_can_trap(const struct kymo_plan *plan);

/* How far a thread is in a pad that prints. */
enum kymo_pad_stage {
	KYMO_PAD_BEFORE, /* it has done nothing, or is in another pad */
	KYMO_PAD_OWNS,   /* a slot is its own, which has no record yet */
	KYMO_PAD_DONE,   /* it has made the record, or its condition does not hold: the displaced instruction is next */
};

/* In the pad whose layout it is. Where it owns a slot, `slot_ret` is the address of that, if the registers are to be
 * trusted. Pure. */
enum kymo_pad_stage kymo_pad_stage(const struct kymo_pad_layout *layout, uint64_t pad, uint32_t slot_size,
				   const struct user_regs_struct *registers, uint64_t *slot_ret);

enum kymo_pad_stand {
	KYMO_PAD_STANDS_OUTSIDE, /* the program counter is not in the pad */
	KYMO_PAD_LEFT,           /* it was, and the registers are those of an address of the program now */
	KYMO_PAD_TRAPPED,        /* it has executed the breakpoint instruction, and its SIGTRAP is to come */
};

/*
 * Bring a thread out of the pad of an event that traps. A thread that has not come to the displaced instruction goes
 * back to the site, with the registers that it had there. The pad has no effect but these, and a record of one that
 * prints, of which kymo_pad_stage() tells. One at or within the displaced instructions goes to the same instruction in
 * the text, or to the one that it was about to execute. `read` gives 8 bytes of the thread's stack. -EIO where it
 * cannot; nothing is changed then. Pure.
 */
int kymo_pad_leave(const struct kymo_plan *plan, const struct kymo_pad_layout *layout, uint64_t site, uint64_t pad,
		   bool (*read)(void *data, uint64_t address, uint64_t *ret), void *data,
		   struct user_regs_struct *registers);

/* A thread of which the pad makes an anchor is that close before the hop, or at it. */
#define KYMO_PAD_ANCHOR_SPAN 138u

/* Whether a thread `at` bytes into a pad with a chain has yet to look at the word `next`, where it goes on. False where
 * that is not certain: near the check for the end of a stack, and in the way out. Pure. */
bool kymo_pad_will_look(const struct kymo_pad_layout *layout, uint64_t at);

#endif
