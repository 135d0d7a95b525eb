#include "arch/x86_64/low_stack.h"

#include <stddef.h>

#include "arch/leave_pad.h"
#include "arch/pad.h"
#include "wire/shared.h"

/*
 * Before anything is stored, where the flags are dead: whether the stack pointer is near the end of the initial
 * thread's stack. No register is free, so it is compared with memory. Below that end lie other threads' stacks, which
 * are looked at where a word is free for a register: the program itself stores there before it does anything else with
 * the stack, so if that word faults the program's own store would fault, too.
 */
static void compare_rsp(struct code *c, uint64_t address)
{
	rip_to(c, "\x48\x3b\x25", 3, address, 0); /* cmp address(%rip),%rsp */
}

void x86_emit_stack_check(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			  struct x86_stack_check *check)
{
	if (!plan->flags_are_dead)
		return;
	compare_rsp(c, env->live + KYMO_PAD_LIVE_STACK_ENOUGH);
	JB(c, &check->is_low);
	check->resume = c->n;
}

#define CHECK_SIZE 13u /* a comparison with memory, and a jump */

/* After the check all ways lead by the hop. With sequences the events are there once more behind the way out, and what
 * leads back to them; else that is not told from what goes on near the end of a stack. */
bool kymo_pad_will_look(const struct kymo_pad_layout *layout, uint64_t at)
{
	if (!layout->hop)
		return false;
	return at == layout->entry || (at >= layout->entry + CHECK_SIZE && at < layout->hop) ||
	       (layout->inner > layout->displaced && at >= layout->inner && at < layout->size);
}

/*
 * Another thread's stack: on to the displaced instructions, or back, with rax as it was. Only the thread pointer's own
 * words are read before the block has said that it is one of glibc's. With rax there is a way to a ring, so the loss is
 * counted where it outlives the process.
 */
static void emit_thread_stack(struct code *c, const struct kymo_pad_env *env, int32_t scratch, size_t resume,
			      size_t displaced)
{
	struct label is_enough = { .n = 0 }, done = { .n = 0 };

	rip_to(c, "\x48\x83\x3d", 3, env->live + KYMO_PAD_LIVE_THREAD_STACK, 1); /* cmpq $0,stack(%rip) */
	byte(c, 0);
	branch_back(c, "\x0f\x84", 2, resume); /* je */
	rsp_slot(c, 0x89, RAX, -scratch);
	EMIT(c, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0); /* mov %fs:16,%rax */
	EMIT(c, 0x64, 0x48, 0x3b, 0x04, 0x25, 0, 0, 0, 0);    /* cmp %fs:0,%rax */
	JNE(c, &is_enough);
	rip_to(c, "\x48\x8b\x05", 3, env->live + KYMO_PAD_LIVE_THREAD_STACK, 0); /* mov stack(%rip),%rax */
	EMIT(c, 0x64, 0x48, 0x8b, 0x00);                                         /* mov %fs:(%rax),%rax */
	EMIT(c, 0x48, 0x39, 0xc4);                                               /* cmp %rax,%rsp */
	JB(c, &is_enough);
	rip_to(c, "\x48\x03\x05", 3, env->live + KYMO_PAD_LIVE_THREAD_LOW, 0); /* add low(%rip),%rax */
	EMIT(c, 0x48, 0x39, 0xc4);
	JAE(c, &is_enough);
	compare_byte(c, env->live, 0); /* there may be no rings */
	JE(c, &done);
	movabs(c, RAX, env->rings + offsetof(struct kymo_wire_ring, lost));
	EMIT(c, 0xf0, 0x48, 0xff, 0x00); /* lock incq (%rax) */
	bind(c, &done);
	rsp_slot(c, 0x8b, RAX, -scratch);
	jump_back(c, displaced);
	bind(c, &is_enough);
	rsp_slot(c, 0x8b, RAX, -scratch);
	jump_back(c, resume);
}

/* After the way out: `layout` tells where the displaced instructions are. */
void x86_emit_stack_low(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			struct x86_stack_check *check, const struct kymo_pad_layout *layout)
{
	struct label low = { .n = 0 };

	if (!plan->flags_are_dead)
		return;
	bind(c, &check->is_low);
	compare_rsp(c, env->live + KYMO_PAD_LIVE_STACK_LOW);
	if (plan->scratch) {
		JAE(c, &low);
		emit_thread_stack(c, env, plan->scratch, check->resume, layout->insn_at[0]);
	} else {
		branch_back(c, "\x0f\x82", 2, check->resume); /* jb: another thread's */
	}
	bind(c, &low);
	rip_to(c, "\xf0\x48\xff\x05", 4, env->live + KYMO_PAD_LIVE_SKIPPED, 0); /* lock incq skipped(%rip) */
	jump_back(c, layout->insn_at[0]);
}

void x86_emit_stack_near(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			 struct x86_stack_check *check, struct label *is_near)
{
	if (!plan->flags_are_dead)
		return;
	bind(c, &check->is_low);
	compare_rsp(c, env->live + KYMO_PAD_LIVE_STACK_LOW);
	JAE(c, is_near);
	jump_back(c, check->resume); /* another thread's */
}
