#include "arch/x86_64/mute.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/readable.h"
#include "wire/shared.h"

/* The mode of an operand. */
enum { AT = 0, AT_DISP8 = 1, ITSELF = 3 };

_Static_assert(sizeof(struct kymo_wire_region) < 128 && offsetof(struct kymo_wire_region, live) < 128,
	       "they are signed bytes in instructions");

/* An instruction on memory at `base`, or on that register: `reg` is its other operand, or more of the opcode. */
static void operate(struct code *c, unsigned int rex, unsigned int opcode, unsigned int mode, unsigned int reg,
		    unsigned int base)
{
	byte(c, rex | base >> 3);
	byte(c, opcode);
	byte(c, mode << 6 | reg << 3 | (base & 7));
}

/* In each live page: no pad reads memory by a system call any more; nor records anything, if `mutes`. */
static void change_pages(struct code *c, const struct kymo_pad_env *env, bool mutes, unsigned int base)
{
	struct label done = { .n = 0 };
	size_t again;

	if (env->readable) {
		movabs(c, base, env->readable + offsetof(struct kymo_wire_readable, is_closed_for_good));
		operate(c, 0x48, 0xc7, AT, 0, base); /* movq $1,(base) */
		imm32(c, 1);
		movabs(c, base, env->readable + offsetof(struct kymo_wire_readable, state));
		operate(c, 0x48, 0xc7, AT, 0, base); /* movq $0,(base) */
		imm32(c, 0);
	}
	movabs(c, base, env->words + offsetof(struct kymo_wire_words, n_regions));
	operate(c, 0x44, 0x8b, AT, R11 & 7, base); /* mov (base),%r11d */
	movabs(c, base, env->header + offsetof(struct kymo_wire_header, regions));
	again = c->n;
	EMIT(c, 0x45, 0x85, 0xdb); /* test %r11d,%r11d */
	JE(c, &done);
	operate(c, 0x48, 0x8b, AT_DISP8, RAX, base); /* mov live(base),%rax */
	byte(c, offsetof(struct kymo_wire_region, live));
	if (mutes)
		EMIT(c, 0xc6, 0x00, 0x00); /* movb $0,(%rax) */
	EMIT(c, 0x48, 0xc7, 0x80);         /* movq $0,READER(%rax) */
	imm32(c, KYMO_PAD_LIVE_READER);
	imm32(c, 0);
	EMIT(c, 0x48, 0xc7, 0x80); /* movq $0,READABLE(%rax) */
	imm32(c, KYMO_PAD_LIVE_READABLE);
	imm32(c, 0);
	operate(c, 0x48, 0x83, ITSELF, 0, base); /* add $size,base */
	byte(c, sizeof(struct kymo_wire_region));
	EMIT(c, 0x41, 0xff, 0xcb); /* dec %r11d */
	jump_back(c, again);
	bind(c, &done);
}

void x86_emit_mute(struct code *c, const struct kymo_pad_env *env, unsigned int base)
{
	struct label plain = { .n = 0 }, seccomp = { .n = 0 }, muted = { .n = 0 }, filters = { .n = 0 };

	EMIT(c, 0x83, 0xff, PR_SET_SECCOMP); /* cmp $PR_SET_SECCOMP,%edi */
	JE(c, &seccomp);
	EMIT(c, 0x83, 0xff, PR_SET_NO_NEW_PRIVS);
	JE(c, &filters);
	EMIT(c, 0x83, 0xff, PR_SET_SYSCALL_USER_DISPATCH);
	JE(c, &filters);
	EMIT(c, 0x83, 0xff, PR_SET_TSC); /* cmp $PR_SET_TSC,%edi */
	JNE(c, &plain);
	EMIT(c, 0x83, 0xfe, PR_TSC_SIGSEGV); /* cmp $PR_TSC_SIGSEGV,%esi */
	JNE(c, &plain);
	JMP(c, &muted);
	bind(c, &seccomp);
	EMIT(c, 0x83, 0xfe, SECCOMP_MODE_STRICT); /* cmp $SECCOMP_MODE_STRICT,%esi */
	JNE(c, &filters);
	bind(c, &muted);
	movabs(c, base, env->data + offsetof(struct kymo_wire_data, is_muted));
	operate(c, 0x48, 0xc7, AT, 0, base); /* movq $1,(base) */
	imm32(c, 1);
	change_pages(c, env, true, base);
	JMP(c, &plain);
	bind(c, &filters);
	change_pages(c, env, false, base);
	bind(c, &plain);
}
