/*
 * Frames: how to get from a function to its caller, by what .eh_frame says of the address. The registers are a
 * thread's, the stack is memory of its process; neither is trusted.
 */
#ifndef KYMO_SYM_UNWIND_H
#define KYMO_SYM_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_module;

/* The registers of x86-64 by DWARF's numbers: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15, and the program counter. */
enum {
	KYMO_FRAME_RBP = 6,
	KYMO_FRAME_RSP = 7,
	KYMO_FRAME_PC = 16,
	KYMO_FRAME_REGISTERS = 17,
};

struct kymo_frame {
	uint64_t registers[KYMO_FRAME_REGISTERS];
	bool is_exact; /* the program counter is where it goes on after a signal; else after a call, which may be the
			  last instruction of its function */
};

/* The word of memory at `address`. */
typedef bool kymo_frame_read(void *context, uint64_t address, uint64_t *ret);

/* The address by which the function and the rules of a frame are found. */
static inline uint64_t kymo_frame_location(const struct kymo_frame *frame)
{
	return frame->registers[KYMO_FRAME_PC] - !frame->is_exact;
}

/*
 * Make `frame`, which is at `vaddr` (its address, as linked) in `module`, its caller's. It is as it was after an error:
 *
 *   -ENODATA   it is the outermost one
 *   -ENOENT    nothing describes the address
 *   -EBADMSG   what does is damaged or not understood, or would lead down the stack
 *   -EFAULT    memory can't be read
 */
int kymo_module_unwind(struct kymo_module *module, uint64_t vaddr, struct kymo_frame *frame, kymo_frame_read *read,
		       void *context);

/*
 * Where in memory the return address of `frame` is, which is at `vaddr` in `module`: to `ret`. -ENODATA, -ENOENT,
 * -EBADMSG and -EFAULT as above; -EBADMSG also where it is in a register. Of the frame's registers those that are not
 * known may have any value; then `ret` has, too.
 */
int kymo_module_return_place(struct kymo_module *module, uint64_t vaddr, const struct kymo_frame *frame,
			     kymo_frame_read *read, void *context, uint64_t *ret);

/* As kymo_module_unwind() by the frame pointer, for code of which nothing is known. -EBADMSG, -EFAULT. */
int kymo_frame_unwind_by_pointer(struct kymo_frame *frame, kymo_frame_read *read, void *context);

#endif
