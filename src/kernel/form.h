/* Forms (wire/form.h) for the kernel's programs, and code of BPF for them. Pure. */
#ifndef KYMO_KERNEL_FORM_H
#define KYMO_KERNEL_FORM_H

#include <stdint.h>

#include "wire/form.h"

struct kernel_code;
struct kernel_label;

enum kymo_kernel_source {
	KYMO_KERNEL_REGISTER,  /* value of the register at `at` in struct pt_regs, plus `value` */
	KYMO_KERNEL_MEMORY,    /* the 8 bytes at that address */
	KYMO_KERNEL_IMMEDIATE, /* `value` */
	KYMO_KERNEL_UNKNOWN,   /* always a fault */
	KYMO_KERNEL_FORM,      /* what `form` computes */
};

/* Where an operation of a form finds what it pushes: as an argument with the first, second or fourth source. */
struct kymo_kernel_place {
	enum kymo_kernel_source source;
	uint16_t at;
	int64_t value;
};

struct kymo_kernel_form {
	const struct kymo_form *form;                       /* the caller's, as is this */
	struct kymo_kernel_place places[KYMO_FORM_OPS_MAX]; /* of its operations REGISTER, STACK and RETVAL;
							       of ADDRESS the program counter */
};

/* Why programs of the kernel cannot compute a form, as what it has: "floating-point numbers". Static; NULL: they can.
 */
const char *kymo_kernel_form_refusal(const struct kymo_form *form);

/* Bytes that a form's values take on the stack. Private to the room, as is what follows. */
#define KERNEL_FORM_STACK (8 * KYMO_FORM_DEPTH_MAX)
/* Where the bytes are that KYMO_FORM_WANT has, among them; the address is the first value. */
#define KERNEL_FORM_WANTED 8

/*
 * Append code that computes `form` into r0, from the struct pt_regs at r6. Its values lie in KERNEL_FORM_STACK bytes
 * from `stack` on, and the thread's tid and pid at `ids`, both relative to the frame pointer. Where the result is a
 * fault it jumps to `fault`. r0 to r5 are changed. The form must be one of those that kymo_kernel_form_refusal() takes.
 */
void kernel_form_emit(struct kernel_code *c, const struct kymo_kernel_form *form, int stack, int ids,
		      struct kernel_label *fault);

#endif
