/*
 * Bringing threads out of pads that trap.
 *
 * Before its displaced instructions such a pad changes rax, rdx, r10, r11 and the flags, which its frame keeps. It
 * changes nothing else but that frame, below the red zone. So a thread can go back to the site from each instruction:
 *
 *	entry … save	the end of the stack is looked at, where flags are dead: nothing was changed
 *	save …		the frame is made: rsp is lower; rax is stored, and may be changed from then on
 *	… displaced	the condition, and the way out: the frame has all, until its last instruction has removed it
 *	insn_at[]	as in the text; a call that was taken apart has pushed its return address
 *	… fault		near the end of the stack: nothing was changed
 *	fault … trap	as the condition
 *	full … 		the same, of one that prints
 */
#include "arch/leave_pad.h"

#include <errno.h>

#include "arch/pad.h"
#include "arch/x86_64/frame.h"

enum {
	SAVE_LOWERED = 8, /* bytes of the instruction that lowers rsp */
	SAVE_RAX = 13,    /* … and of that which stores rax */
	TRAP_SIZE = 1,
	PUSHED = 8,
};

#define CARRY 0x1u
#define ZERO 0x40u
#define OVERFLOW 0x800u
#define BY_LAHF 0xd5u /* sign, zero, adjust, parity, carry */

struct frame {
	bool (*read)(void *data, uint64_t address, uint64_t *ret);
	void *data;
	uint64_t at;
};

static bool read_slot(const struct frame *frame, unsigned int slot, unsigned long long *ret)
{
	uint64_t value;

	if (!frame->read(frame->data, frame->at + slot, &value))
		return false;
	*ret = value;
	return true;
}

/* `ax` is what lahf and seto have left there. */
static uint64_t flags_of(uint64_t before, uint64_t ax)
{
	return (before & ~(uint64_t)(BY_LAHF | OVERFLOW)) | (ax >> 8 & BY_LAHF) | (ax & CARRY ? OVERFLOW : 0);
}

static int restore(const struct frame *frame, struct user_regs_struct *registers)
{
	struct user_regs_struct changed = *registers;
	unsigned long long flags;

	if (!read_slot(frame, SLOT_RAX, &changed.rax) || !read_slot(frame, SLOT_RDX, &changed.rdx) ||
	    !read_slot(frame, SLOT_R10, &changed.r10) || !read_slot(frame, SLOT_R11, &changed.r11) ||
	    !read_slot(frame, SLOT_FLAGS, &flags))
		return -EIO;
	changed.eflags = flags_of(registers->eflags, flags);
	changed.rsp += FRAME;
	*registers = changed;
	return 0;
}

/* While the frame is being made. */
static int undo_save(const struct frame *frame, uint32_t done, struct user_regs_struct *registers)
{
	if (done >= SAVE_RAX && !read_slot(frame, SLOT_RAX, &registers->rax))
		return -EIO;
	if (done >= SAVE_LOWERED)
		registers->rsp += FRAME;
	return 0;
}

/* The last displaced or copied instruction at or before that offset. */
static unsigned int find_instruction(const struct kymo_pad_layout *layout, unsigned int n, uint32_t offset)
{
	unsigned int i = n;

	while (i && layout->insn_at[i] > offset)
		i--;
	return i;
}

static bool is_displaced(const struct kymo_plan *plan, const struct kymo_pad_layout *layout, uint32_t offset)
{
	const unsigned int n = plan->n_insns + plan->n_copied;

	return offset >= layout->insn_at[0] &&
	       (plan->ends_flow ? offset < layout->insn_at[n] : offset <= layout->insn_at[n]);
}

static int bring_back(const struct kymo_pad_layout *layout, const struct frame *frame, uint32_t offset,
		      struct user_regs_struct *registers)
{
	if (offset >= layout->inner && offset < layout->insn_at[0])
		return restore(frame, registers);
	if ((offset >= layout->fault && offset < layout->trap) || (layout->full && offset >= layout->full))
		return restore(frame, registers);
	if (offset > layout->save && offset < layout->inner)
		return undo_save(frame, offset - layout->save, registers);
	return 0;
}

enum kymo_pad_stage kymo_pad_stage(const struct kymo_pad_layout *layout, uint64_t pad, uint32_t slot_size,
				   const struct user_regs_struct *registers, uint64_t *slot_ret)
{
	const uint64_t offset = registers->rip - pad;

	if (!layout->claim || offset < layout->claim || offset >= layout->size)
		return KYMO_PAD_BEFORE;
	if (offset >= layout->displaced)
		return offset < layout->insn_at[0] || offset == layout->counted ? KYMO_PAD_DONE : KYMO_PAD_BEFORE;
	if ((offset == layout->claim && !(registers->eflags & ZERO)) || offset == layout->gave_up)
		return KYMO_PAD_BEFORE;
	*slot_ret = (registers->r10 + registers->r11) & -(uint64_t)slot_size;
	return KYMO_PAD_OWNS;
}

int kymo_pad_leave(const struct kymo_plan *plan, const struct kymo_pad_layout *layout, uint64_t site, uint64_t pad,
		   bool (*read)(void *data, uint64_t address, uint64_t *ret), void *data,
		   struct user_regs_struct *registers)
{
	const struct frame frame = { .read = read, .data = data, .at = registers->rsp };
	const uint64_t offset = registers->rip - pad;
	unsigned int i;
	int err;

	if (offset < layout->entry || offset >= layout->size)
		return KYMO_PAD_STANDS_OUTSIDE;
	if (offset == layout->trap + TRAP_SIZE)
		return KYMO_PAD_TRAPPED;
	if (is_displaced(plan, layout, (uint32_t)offset)) {
		i = find_instruction(layout, plan->n_insns + plan->n_copied, (uint32_t)offset);
		if (offset != layout->insn_at[i])
			registers->rsp += PUSHED;
		registers->rip = site + plan->insn_offset[i];
		return KYMO_PAD_LEFT;
	}
	err = bring_back(layout, &frame, (uint32_t)offset, registers);
	if (err)
		return err;
	registers->rip = site;
	return KYMO_PAD_LEFT;
}
