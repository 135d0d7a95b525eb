/*
 * Functions with one instruction each that a probe takes by a known tactic, and loops that call them.
 *
 * The instruction is at SITE_OFFSET of each function. Those after it decide about the tactic: a branch, never
 * taken, leads right after it, so nothing may be displaced together with it but in `group`; and a jump in place of
 * three bytes ends in what follows, which are the upper bytes of its distance. They point to free memory (`pun`), or
 * into the 32 MiB of `occupied`, from which a prefix may move them (`prefixed`). If no number of prefixes does so, what
 * follows has to make room (`evicted`).
 *
 * Which tactic it is in the end is read from `kymo status`; see kbench/case_puns.py.
 */
#include "harness.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

#ifdef __clang__
#define FUNCTION __attribute__((naked, noinline, aligned(16)))
#else
#define FUNCTION __attribute__((naked, noipa, aligned(16)))
#endif

/* 10 bytes, SITE_OFFSET. rax points to memory of the red zone, for those that write to it. */
#define BEFORE \
	"lea -64(%rsp), %rax\n\t" \
	"test %rsi, %rsi\n\t" \
	"js 1f\n\t"

#define THREE_BYTES "mov %rdi, %rcx\n\t"
/* Lead 1.7 GiB backwards, where nothing grows: in the first two bytes after a site, or in the third. */
#define BACKWARDS ".byte 0x66, 0x90\n\t"
#define BACKWARDS_LATER ".byte 0x90\n\t"

/* After the program's text, so that jumps of 8 MiB and of 32 KiB forward lead into it. It is never touched. */
__attribute__((used)) static char occupied[32 << 20];

#define SHAPE(shape, body) \
	void hit_##shape(int a, long b); \
	FUNCTION void hit_##shape(int a, long b) \
	{ \
		asm(BEFORE body "ret"); \
	} \
	static void loop_##shape(long calls) \
	{ \
		for (long i = 0; i < calls; i++) \
			hit_##shape((int)i, i); \
	}

SHAPE(jump, "lea 0x11223344(%rdi), %rcx\n\t"
	    "1: " BACKWARDS)
SHAPE(group, THREE_BYTES "mov %rsi, %rdx\n\t"
			 "1: " BACKWARDS)
SHAPE(pun, THREE_BYTES "1: " BACKWARDS)
/* test %al, (%rax) */
SHAPE(prefixed, THREE_BYTES "1: .byte 0x84, 0x00\n\t" BACKWARDS_LATER)
/* test %al, (%rax); add %al, (%rax) */
SHAPE(evicted, THREE_BYTES "1: .byte 0x84, 0x00, 0x00, 0x00\n\t" BACKWARDS_LATER)

static const struct bench_loop loops[] = {
	{ "jump", 2, loop_jump },         { "group", 2, loop_group },     { "pun", 2, loop_pun },
	{ "prefixed", 2, loop_prefixed }, { "evicted", 2, loop_evicted },
};

int main(int argc, char **argv)
{
	return bench_main(argc, argv, loops, N_OF(loops));
}
