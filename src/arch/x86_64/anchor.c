/*
 * An anchor: where in the history of a thread's branches its record was made (wire/clones.h).
 *
 * The word of a thread is looked at only where the live page names an arena: then each thread has a control block, and
 * the word is 0 or leads into an arena. Only the one that is named is written to, which stays mapped as long as a
 * thread may be here (remove.c). The 0 behind the entries is stored first and their first half last, so that a ring is
 * whole at any instant. A handler that comes in between records over that: as in clones.
 */
#include "arch/x86_64/anchor.h"

#include "arch/leave_pad.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/frame.h"
#include "wire/clones.h"

#define UPPER_OF_WORD 4
#define LOAD_SIZE 10u /* of what the hop is preceded by */
_Static_assert(KYMO_PAD_ANCHOR_SPAN >= X86_ANCHOR_SIZE_MAX + LOAD_SIZE, "it is where the journal says");
_Static_assert(KYMO_WIRE_ARENA_RING_SIZE == 1u << 16, "16 bits of a position wrap");

/* %fs:disp32 */
static void fs_operand(struct code *c, int32_t disp)
{
	byte(c, 0x25);
	imm32(c, disp);
}

void x86_emit_anchor(struct code *c, const struct kymo_pad_env *env)
{
	struct label done = { .n = 0 };

	rsp_slot(c, 0x8b, RAX, SLOT_TSC);
	EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
	JE(c, &done);
	rip_to(c, "\x8b\x15", 2, env->live + KYMO_PAD_LIVE_ARENA, 0); /* mov arena(%rip),%edx */
	EMIT(c, 0x85, 0xd2);                                          /* test %edx,%edx */
	JE(c, &done);
	EMIT(c, 0x64, 0x39, 0x14); /* cmp %edx,%fs:position+4 */
	fs_operand(c, env->position + UPPER_OF_WORD);
	JNE(c, &done);
	EMIT(c, 0x64, 0x4c, 0x8b, 0x14); /* mov %fs:position,%r10 */
	fs_operand(c, env->position);
	EMIT(c, 0x4d, 0x89, 0xd3);                    /* mov %r10,%r11 */
	EMIT(c, 0x66, 0x45, 0x8d, 0x5a, 0x08);        /* lea 8(%r10),%r11w */
	EMIT(c, 0x41, 0xc7, 0x03, 0, 0, 0, 0);        /* movl $0,(%r11) */
	EMIT(c, 0x66, 0x45, 0x8d, 0x5b, (uint8_t)-4); /* lea -4(%r11),%r11w */
	EMIT(c, 0x89, 0xc2);                          /* mov %eax,%edx */
	EMIT(c, 0x81, 0xca);                          /* or $…,%edx */
	imm32(c, KYMO_WIRE_ANCHOR | KYMO_WIRE_ANCHOR_LOW);
	EMIT(c, 0x41, 0x89, 0x13);                        /* mov %edx,(%r11) */
	EMIT(c, 0x48, 0xc1, 0xe8, KYMO_WIRE_ANCHOR_BITS); /* shr $30,%rax */
	EMIT(c, 0x25);                                    /* and $…,%eax */
	imm32(c, (INT64_C(1) << KYMO_WIRE_ANCHOR_BITS) - 1);
	EMIT(c, 0x0d); /* or $…,%eax */
	imm32(c, KYMO_WIRE_ANCHOR);
	EMIT(c, 0x41, 0x89, 0x02);             /* mov %eax,(%r10) */
	EMIT(c, 0x66, 0x45, 0x8d, 0x5b, 0x04); /* lea 4(%r11),%r11w */
	EMIT(c, 0x64, 0x4c, 0x89, 0x1c);       /* mov %r11,%fs:position */
	fs_operand(c, env->position);
	bind(c, &done);
}
