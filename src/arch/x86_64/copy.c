/*
 * A copy of the stack for a record: the registers that unwinding begins with, and the bytes from the stack pointer on.
 *
 * Each byte is one that can be read for certain while this thread runs:
 *
 *	on the initial thread's stack, up to its end; on a stack of glibc's, up to the thread control block, which lies
 *	at its top and points to itself; on any other (a signal stack, a coroutine's, another C library's), up to the
 *	end of the stack pointer's page
 */
#include "arch/x86_64/copy.h"

#include "arch/x86_64/frame.h"
#include "wire/event.h"

_Static_assert(sizeof(struct kymo_wire_stack) == 24, "the offsets below");

void x86_find_stack_end(struct code *c, const struct kymo_pad_env *env)
{
	struct label other = { .n = 0 }, found = { .n = 0 };

	x86_load_saved(c, RAX, RSP);
	EMIT(c, 0x49, 0x89, 0xc2);                         /* mov %rax,%r10 */
	EMIT(c, 0x49, 0x81, 0xca, 0xff, 0x0f, 0x00, 0x00); /* or $4095,%r10 */
	EMIT(c, 0x49, 0xff, 0xc2);                         /* inc %r10 */
	if (env->stack_high) {
		movabs(c, R11, env->stack_low);
		EMIT(c, 0x4c, 0x39, 0xd8); /* cmp %r11,%rax */
		JB(c, &other);
		movabs(c, R11, env->stack_high);
		EMIT(c, 0x4c, 0x39, 0xd8);
		JAE(c, &other);
		EMIT(c, 0x4d, 0x89, 0xda); /* mov %r11,%r10 */
		JMP(c, &found);
		bind(c, &other);
	}
	rip_to(c, "\x4c\x8b\x1d", 3, env->live + KYMO_PAD_LIVE_THREAD_STACK, 0); /* mov stack(%rip),%r11 */
	EMIT(c, 0x4d, 0x85, 0xdb);                                               /* test %r11,%r11 */
	JE(c, &found);
	EMIT(c, 0x64, 0x48, 0x8b, 0x14, 0x25, 0x10, 0, 0, 0); /* mov %fs:16,%rdx */
	EMIT(c, 0x64, 0x48, 0x3b, 0x14, 0x25, 0, 0, 0, 0);    /* cmp %fs:0,%rdx */
	JNE(c, &found);
	EMIT(c, 0x64, 0x4d, 0x8b, 0x1b); /* mov %fs:(%r11),%r11 */
	EMIT(c, 0x4d, 0x85, 0xdb);       /* test %r11,%r11: the initial thread's block has no stack */
	JE(c, &found);
	EMIT(c, 0x4c, 0x39, 0xd8); /* cmp %r11,%rax */
	JB(c, &found);
	EMIT(c, 0x48, 0x39, 0xd0); /* cmp %rdx,%rax */
	JAE(c, &found);
	EMIT(c, 0x49, 0x89, 0xd2); /* mov %rdx,%r10 */
	bind(c, &found);
}

void x86_compose_copy(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		      const struct kymo_fetch *fetch, int32_t begin, uint32_t at)
{
	struct label short_ = { .n = 0 };

	x86_find_stack_end(c, env);
	EMIT(c, 0x49, 0x29, 0xc2); /* sub %rax,%r10 */
	EMIT(c, 0x49, 0x81, 0xfa); /* cmp $limit,%r10 */
	imm32(c, fetch->limit);
	branch(c, &short_, "\x0f\x86", 2); /* jbe */
	EMIT(c, 0x41, 0xba);               /* mov $limit,%r10d */
	imm32(c, fetch->limit);
	bind(c, &short_);
	rsp_slot(c, 0x89, R10, BELOW_COPY_SIZE);
	EMIT(c, 0x41, 0x8d, 0x52, sizeof(struct kymo_wire_stack)); /* lea sizeof(%r10),%edx */
	rsp_slot(c, 0x8d, R10, begin);
	rsp_slot(c, 0x8b, R11, BELOW_COMPOSED_SIZE);
	store(c, RDX, 2, at);
	store(c, RAX, 8, at + 10);
	movabs(c, RAX, site->address);
	store(c, RAX, 8, at + 2);
	store(c, RBP, 8, at + 18);
}
