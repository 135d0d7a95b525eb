/*
 * What the programs of system calls, and the part of them that copies memory, know of each other. Registers throughout:
 *
 *	r6	the sample
 *	r7	where its next copy goes; at most ROOM when a copy begins
 *	r8, r9	address and size of what is copied
 *
 * Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_SAMPLE_H
#define KYMO_KERNEL_CALL_SAMPLE_H

#include "kernel/call_program.h"
#include "kernel/code.h"

#define AT(member) ((int)offsetof(struct kernel_call, member))

/*
 * Below the frame pointer. What is known of the event is in the sample before something is copied, and keys are made
 * after that. So these share the place of small copies with STACK_TOP. Programs that make nothing but small copies thus
 * have less than 64 bytes: from there on the kernel may give them a stack of their own, which its check of copies does
 * not know for one (copy_to_stack()).
 */
enum {
	BUFFER_SIZE = 32,
	BUFFER = -BUFFER_SIZE, /* STACK_TOP is its end */
	IDS = BUFFER,
	POINTER = IDS + 8,   /* the tracepoint's first argument */
	VALUE = POINTER + 8, /* its second one */
	LINE = BUFFER - 8,   /* the CPU's, of the ring */
	REST = LINE - 8,
	IS_I386 = REST, /* before copies */
	COUNT = REST - 8,
	ARRAY = COUNT - 8,
	FIELDS = ARRAY - 8 * 8, /* of what was copied last */
};

#endif
