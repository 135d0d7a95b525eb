/* Operations of forms on floating-point numbers. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_FORM_FLOAT_H
#define KYMO_ARCH_X86_64_FORM_FLOAT_H

#include <stdint.h>

struct code;
struct kymo_form_op;

#define X86_FLOAT_SIZE_MAX 208 /* bytes of one operation */

/* rax = what the operation makes of rax. rdx is changed, and what is below the stack pointer. */
void x86_change_float(struct code *c, const struct kymo_form_op *op);

/* The same of two: a at `slot` of the frame, b in rax. */
void x86_join_floats(struct code *c, const struct kymo_form_op *op, int32_t slot);

#endif
