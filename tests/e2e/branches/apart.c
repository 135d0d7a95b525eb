/* A function on two pages: a call's return site on the second leads to what the jump at one on the first takes. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

long across(long n);

__asm__(".text\n"
	".p2align 12\n"
	".skip 4096 - 48\n"
	".globl across\n"
	".type across, @function\n"
	"across:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	mov %rdi, %rbx\n"
	"	xor %ebp, %ebp\n"
	"	sub $8, %rsp\n"
	"	call add\n"
	"	dec %ebx\n"
	"1:	test %ebx, %ebx\n"
	"	je 2f\n"
	"	dec %ebx\n"
	"	jmp 3f\n"
	"	.p2align 12\n"
	"3:	call add\n"
	"	mov %rbp, %rbp\n"
	"	cmp %eax, %eax\n"
	"	jmp 1b\n"
	"2:	mov %rbp, %rax\n"
	"	add $8, %rsp\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size across, . - across\n"
	".type add, @function\n"
	"add:	lea 3(%rbp), %rbp\n"
	"	ret\n"
	".size add, . - add\n"
	".p2align 12\n");

/* For a moment the first page is no code. */
static void turn_page(void)
{
	char *page = (char *)((unsigned long)across & ~4095ul);

	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	usleep(1000);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

/* Each line of input, but the last, is an order to turn the page again and again, or not to. */
int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	bool turns = false;
	char line[16];

	setbuf(stdout, NULL);
	setbuf(stdin, NULL);
	puts("ready");
	for (;;) {
		if (poll(&input, 1, 0)) {
			if (!fgets(line, sizeof(line), stdin))
				break;
			turns = !turns;
			puts(turns ? "turns" : "stays");
		}
		if (turns)
			turn_page();
		if (across(1000) != 3000)
			return 1;
	}
	puts("all is right");
	return 0;
}
