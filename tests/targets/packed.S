/*
 * Functions for packed.c, each with an entry of two bytes that is all that a jump there may change: the loop leads to the instruction behind it, and the bytes that follow
 * lead any jump below address 0. So the next instruction makes room, or one near by.
 */
	.text
	.macro function name, add
	.globl \name
	.type \name, @function
\name:
	xor	%eax, %eax
1:	mov	%eax, %eax
	mov	%edi, %edi
	inc	%eax
	cmp	$\add, %eax
	jne	1b
	add	%edi, %eax
	ret
	.size \name, . - \name
	.endm

	.macro	long name, add
	.globl \name
	.type \name, @function
\name:
	xor	%eax, %eax
1:	mov	$0x90909090, %edx
	inc	%eax
	cmp	$\add, %eax
	jne	1b
	add	%edi, %eax
	ret
	.size \name, . - \name
	.endm

	.p2align 4
	function add_1, 1
	function add_2, 2
	function add_3, 3
	function add_4, 4
	function add_5, 5
	function add_6, 6
	long add_7, 7
	long add_8, 8
	long add_9, 9
	long add_10, 10
	long add_11, 11
	long add_12, 12
	.globl after_last
	.type after_last, @function
after_last:
	mov	%edi, %eax
	ret
	.size after_last, . - after_last

	.section .note.GNU-stack,"",@progbits
