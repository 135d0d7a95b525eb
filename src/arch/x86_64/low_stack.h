/* The end of the stack, before which pads do nothing. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_LOW_STACK_H
#define KYMO_ARCH_X86_64_LOW_STACK_H

#include "arch/plan.h"
#include "arch/x86_64/code.h"

struct kymo_pad_env;
struct kymo_pad_layout;

/* The look at the stack pointer of one pad, while code is made of it. Zeroed. */
struct x86_stack_check {
	struct label is_low;
	size_t resume;
};

/* The look itself, which comes first of all. */
void x86_emit_stack_check(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			  struct x86_stack_check *check);

/* After the way out, of which `layout` tells where the displaced instructions are: what is done near that end. */
void x86_emit_stack_low(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			struct x86_stack_check *check, const struct kymo_pad_layout *layout);

/* In place of that for a pad that traps: near the end of the initial thread's stack a jump to `is_near`. */
void x86_emit_stack_near(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			 struct x86_stack_check *check, struct label *is_near);

#endif
