#include "arch/breakable.h"

#include <errno.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * To make a call again the kernel sets rip back to `syscall` before it calls the handler. So there, and before, the
 * call has not been made; one byte after it has, and rax says how. The stack is the same all along.
 */
__asm__(".pushsection .text, \"ax\", @progbits\n"
	".globl kymo_breakable_call, kymo_breakable_syscall, kymo_breakable_return\n"
	".hidden kymo_breakable_call, kymo_breakable_syscall, kymo_breakable_return\n"
	".type kymo_breakable_call, @function\n"
	".p2align 4\n"
	"kymo_breakable_call:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	movq %r8, %r10\n"
	"	movq %r9, %r8\n"
	"kymo_breakable_syscall:\n"
	"	syscall\n"
	"kymo_breakable_return:\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size kymo_breakable_call, . - kymo_breakable_call\n"
	".popsection\n");

extern const char kymo_breakable_syscall[], kymo_breakable_return[];

void kymo_break_call(void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)registers[REG_RIP];

	if (at < (uintptr_t)kymo_breakable_call || at > (uintptr_t)kymo_breakable_syscall)
		return;
	registers[REG_RIP] = (greg_t)(uintptr_t)kymo_breakable_return;
	registers[REG_RAX] = -EINTR;
}
