/*
 * hostile
 *
 * Notes of markers as no compiler writes them: which, HOSTILE says (compiled by tests). What is around them works all
 * the same: for each line on stdin two threads run through it 1,000 times and check it, and "done" is said.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "target.h"

#define NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"

/* struct kymo_marker_note */
#define NOTE(type, code, target, third, types, name) \
	".pushsection .note.kymo,\"a\",\"note\"\n" \
	".balign 4\n" \
	".4byte 5, 36, " type "\n" \
	".asciz \"kymo\"\n" \
	".balign 4\n" \
	".4byte " code ", " target ", " third ", " types ", 95f - ., 96f - ., 0, 1, 0\n" \
	".popsection\n" \
	".pushsection .rodata.names,\"a\"\n" \
	"95: .asciz \"" name "\"\n" \
	"96: .asciz \"%%s\"\n" \
	".popsection\n"
#define SITE(code, cold, gate, name) NOTE("1", code " - .", cold " - .", gate " - .", "0", name)
#define PLACE(code, types, name) NOTE("2", code " - .", "0", "0", types, name)

#define ONE 1
#define SAME_GATE 2 /* two sites, one gate */
#define SAME_SITE 3 /* two notes for one site, with cold blocks and gates of their own */
#define SITE_IS_PLACE 4
#define WITHIN 5   /* the NOP's bytes are the operand of another instruction */
#define NO_PLACE 6 /* a site alone */
#define NO_SITE 7  /* a place alone, in the hot path */
#define PLACE_WITHIN 8
#define PAYLOAD 9           /* a string, and r10 and r11 have nothing to do with one */
#define CROSSES 10          /* site and place lie on two pages each */
#define COLD_WITHIN 11      /* the cold block is the middle of an instruction */
#define READ_ONLY 12        /* the gate's page is made read-only by the program */
#define FAR_GATE 13         /* the gates of two sites overlap */
#define BUSY 14             /* the gate says that the program is changing the site, for ever */
#define FULL 15             /* the counter is at its end */
#define TOGGLED 16          /* the program has it on itself */
#define PORTABLE_NOWHERE 17 /* a portable site whose cold block is at an address that nothing is mapped at */

#ifndef HOSTILE
#define HOSTILE ONE
#endif

__asm__(".data\n"
	".balign 4096\n"
	".globl the_gates\n"
	"the_gates: .space 4096\n"
	"gate = the_gates\n"
	"other_gate = the_gates + 16\n"
	"overlapping_gate = the_gates + 2\n"
	".text\n");
extern unsigned char the_gates[4096];

__attribute__((noinline)) static long pass(long n)
{
#if HOSTILE == ONE || HOSTILE == READ_ONLY || HOSTILE == BUSY || HOSTILE == FULL || HOSTILE == TOGGLED
	__asm__ volatile("1: " NOP "jmp 3f\n"
			 "2: mov %0, %%rdi\n"
			 "4: " NOP "3:\n" SITE("1b", "2b", "gate", "one") PLACE("4b", "3", "one")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#elif HOSTILE == SAME_GATE || HOSTILE == FAR_GATE
	__asm__ volatile("1: " NOP "5: " NOP "jmp 3f\n"
			 "2: mov %0, %%rdi\n"
			 "4: " NOP "3:\n" SITE("1b", "2b", "gate", "one")
#if HOSTILE == SAME_GATE
				 SITE("5b", "2b", "gate", "one")
#else
				 SITE("5b", "2b", "overlapping_gate", "two")
#endif
					 PLACE("4b", "3", "one") PLACE("4b", "3", "two")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#elif HOSTILE == SAME_SITE
	__asm__ volatile("1: " NOP "jmp 3f\n"
			 "2: mov %0, %%rdi\n"
			 "4: " NOP "jmp 3f\n"
			 "5: mov %0, %%rsi\n"
			 "6: " NOP "3:\n" SITE("1b", "2b", "gate", "one") SITE("1b", "5b", "other_gate", "two")
				 PLACE("4b", "3", "one") PLACE("6b", "3", "two")
			 :
			 : "r"(n)
			 : "rdi", "rsi", "cc");
#elif HOSTILE == SITE_IS_PLACE
	__asm__ volatile("mov %0, %%rdi\n"
			 "1: " NOP "2: nop\n nop\n nop\n nop\n nop\n" SITE("1b", "2b", "gate", "one")
				 PLACE("1b", "3", "one")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#elif HOSTILE == WITHIN
	__asm__ volatile("1: movabs $0x00000000441f0f12, %%rdi\n jmp 3f\n"
			 "2: mov %0, %%rdi\n"
			 "4: " NOP "3:\n" SITE("1b + 3", "2b", "gate", "one")
				 PLACE("4b", "3", "one") "mov $0x441f0f12, %%eax\n cmp %%rax, %%rdi\n je 7f\n ud2\n7:\n"
			 :
			 : "r"(n)
			 : "rdi", "rax", "cc");
#elif HOSTILE == PLACE_WITHIN
	__asm__ volatile("1: " NOP "2: movabs $0x00000000441f0f12, %%rdi\n" SITE("1b", "2b", "gate", "one") PLACE(
				 "2b + 3", "3", "one") "mov $0x441f0f12, %%eax\n cmp %%rax, %%rdi\n je 7f\n ud2\n7:\n"
			 :
			 : "r"(n)
			 : "rdi", "rax", "cc");
#elif HOSTILE == NO_PLACE
	__asm__ volatile("1: " NOP "jmp 3f\n"
			 "2: mov %0, %%rdi\n"
			 "3:\n" SITE("1b", "2b", "gate", "one")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#elif HOSTILE == NO_SITE
	__asm__ volatile("mov %0, %%rdi\n 4: " NOP PLACE("4b", "3", "one") : : "r"(n) : "rdi", "cc");
#elif HOSTILE == PAYLOAD
	__asm__ volatile("1: " NOP "jmp 3f\n"
			 "2: mov $16, %%r10\n mov $8, %%r11\n"
			 "4: " NOP "3:\n" SITE("1b", "2b", "gate", "one") PLACE("4b", "7", "one")
			 :
			 : "r"(n)
			 : "r10", "r11", "cc");
#elif HOSTILE == CROSSES
	__asm__ volatile(".balign 4096\n .fill 4096 - 2, 1, 0x90\n 1: " NOP "jmp 3f\n"
			 ".balign 4096\n .fill 4096 - 8, 1, 0x90\n 2: mov %0, %%rdi\n nop\n nop\n"
			 "4: " NOP "3:\n" SITE("1b", "2b", "gate", "one") PLACE("4b", "3", "one")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#elif HOSTILE == COLD_WITHIN
	__asm__ volatile("1: " NOP "jmp 3f\n"
			 "2: movabs $0x9090909090909090, %%rdi\n"
			 "4: " NOP "3:\n" SITE("1b", "2b + 1", "gate", "one") PLACE("4b", "3", "one")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#elif HOSTILE == PORTABLE_NOWHERE
	__asm__ volatile("cmpl $0, gate(%%rip)\n je 3f\n"
			 "2: mov %0, %%rdi\n"
			 "4: " NOP "3:\n" NOTE("1", "0", "0x7000000", "gate - .", "0", "one") PLACE("4b", "3", "one")
			 :
			 : "r"(n)
			 : "rdi", "cc");
#endif
	return n + 1;
}

static void *run(void *arg)
{
	for (long i = 0; i < 1000; i++)
		CHECK(pass(i) == i + 1);
	return NULL;
}

int main(void)
{
	pthread_t other;
	char c;

#if HOSTILE == READ_ONLY
	CHECK(mprotect(the_gates, 4096, PROT_READ) == 0);
#elif HOSTILE == BUSY
	the_gates[1] = 1;
#elif HOSTILE == FULL
	the_gates[2] = the_gates[3] = 0xff;
#elif HOSTILE == TOGGLED
	the_gates[0] = 1; /* what it does to the text is another's to say */
#endif
	say("ready\n");
	while (read(STDIN_FILENO, &c, 1) == 1) {
		CHECK(pthread_create(&other, NULL, run, NULL) == 0);
		run(NULL);
		CHECK(pthread_join(other, NULL) == 0);
		say("done\n");
	}
	return 0;
}
