/* A 32-bit program that does nothing, for a minute: kymo must refuse it with a sentence. */
	.code32
	.globl _start
	.type _start, @function
_start:
	movl $162, %eax		/* nanosleep */
	movl $minute, %ebx
	xorl %ecx, %ecx
	int $0x80
	movl $1, %eax		/* exit */
	xorl %ebx, %ebx
	int $0x80
	.size _start, . - _start

	.section .rodata
minute:
	.long 60, 0
	.section .note.GNU-stack, "", @progbits
