/*
 * registers N [-t]
 *
 * Calls probed() N times, with values in all registers, flags and stack words that follow from the number i of the
 * call. Fails if any register, flag or vector register has another value afterward. -t: in a second thread. Prints
 * where it was, as JSON.
 *
 *	register r (as numbered by the processor)	0x0123456789abcdef * (r + 1) + i * 0x1111111111111111
 *	flags						DF in every second call, the arithmetic ones as i's bits say
 *	stack word n >= 1 at probed()			0xabcd000000000000 + (n - 1), for n <= 256; word 0 is the
 *							return address
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_ARITHMETIC 0x8d5ull
#define FLAG_DIRECTION 0x400ull

/* rsp, the fifth, is what it is. */
struct state {
	uint64_t registers[16], flags;
	uint8_t vectors[16][16];
};

struct state before, after;
uint64_t stack_at_probe, saved_stack;
void probed(void);
void call_probed(void);
extern char returns_here[];

__asm__(".text\n"
	".globl probed\n"
	".type probed, @function\n"
	".balign 16\n"
	"probed:\n"
	"	nopl 0x12345678(%rax,%rax,1)\n"
	"	ret\n"
	"	.size probed, . - probed\n"

	".macro vector op, n\n"
	"	.if \\op == 0\n	movdqu before+136+16*\\n(%rip), %xmm\\n\n	.else\n	movdqu %xmm\\n, "
	"after+136+16*\\n(%rip)\n	.endif\n"
	".endm\n"

	".globl call_probed\n"
	".type call_probed, @function\n"
	"call_probed:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, saved_stack(%rip)\n"
	"	sub $2048, %rsp\n"
	"	movabs $0xabcd000000000000, %rax\n"
	"	xor %ecx, %ecx\n"
	"1:	mov %rax, (%rsp,%rcx,8)\n	inc %rax\n	inc %ecx\n	cmp $256, %ecx\n	jb 1b\n"
	"	lea -8(%rsp), %rax\n	mov %rax, stack_at_probe(%rip)\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n	vector 0, \\n\n	.endr\n"
	"	pushq before+128(%rip)\n	popfq\n"
	"	mov before(%rip), %rax\n	mov before+8(%rip), %rcx\n	mov before+16(%rip), %rdx\n"
	"	mov before+24(%rip), %rbx\n	mov before+40(%rip), %rbp\n	mov before+48(%rip), %rsi\n"
	"	mov before+56(%rip), %rdi\n	mov before+64(%rip), %r8\n	mov before+72(%rip), %r9\n"
	"	mov before+80(%rip), %r10\n	mov before+88(%rip), %r11\n	mov before+96(%rip), %r12\n"
	"	mov before+104(%rip), %r13\n	mov before+112(%rip), %r14\n	mov before+120(%rip), %r15\n"
	"	call probed\n"
	".globl returns_here\n"
	"returns_here:\n"
	"	mov %rax, after(%rip)\n	mov %rcx, after+8(%rip)\n	mov %rdx, after+16(%rip)\n"
	"	mov %rbx, after+24(%rip)\n	mov %rsp, after+32(%rip)\n	mov %rbp, after+40(%rip)\n"
	"	mov %rsi, after+48(%rip)\n	mov %rdi, after+56(%rip)\n	mov %r8, after+64(%rip)\n"
	"	mov %r9, after+72(%rip)\n	mov %r10, after+80(%rip)\n	mov %r11, after+88(%rip)\n"
	"	mov %r12, after+96(%rip)\n	mov %r13, after+104(%rip)\n	mov %r14, after+112(%rip)\n"
	"	mov %r15, after+120(%rip)\n"
	"	pushfq\n	popq after+128(%rip)\n	cld\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n	vector 1, \\n\n	.endr\n"
	"	mov saved_stack(%rip), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	"	.size call_probed, . - call_probed\n");

static void fill(uint64_t i)
{
	for (uint64_t r = 0; r < 16; r++)
		before.registers[r] = 0x0123456789abcdefull * (r + 1) + i * 0x1111111111111111ull;
	before.flags = 0x202 | ((i * 0x9e5) & FLAGS_ARITHMETIC) | (i & 1 ? FLAG_DIRECTION : 0);
	for (size_t v = 0; v < sizeof(before.vectors); v++)
		before.vectors[v / 16][v % 16] = (uint8_t)(v * 7 + i);
}

static void *run(void *arg)
{
	long n = *(long *)arg;

	for (long i = 0; i < n; i++) {
		fill((uint64_t)i);
		call_probed();
		before.registers[4] = stack_at_probe + 8;
		if (memcmp(&before, &after, sizeof(before))) {
			fprintf(stderr, "call %ld changed a register\n", i);
			for (int r = 0; r < 16; r++)
				if (before.registers[r] != after.registers[r])
					fprintf(stderr, "%d: %lx, then %lx\n", r, before.registers[r],
						after.registers[r]);
			if (before.flags != after.flags)
				fprintf(stderr, "flags: %lx, then %lx\n", before.flags, after.flags);
			exit(3);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread;

	if (argc > 2) {
		if (pthread_create(&thread, NULL, run, &n) || pthread_join(thread, NULL))
			return 1;
	} else {
		run(&n);
	}
	printf("{\"stack\": %lu, \"probed\": %lu, \"returns\": %lu}\n", stack_at_probe, (uint64_t)probed,
	       (uint64_t)returns_here);
	return 0;
}
