/* Functions for corners.c that are as awkward as code can be: each does something small that it checks. */
	.text

	.macro	function name
	.globl	\name
	.type	\name, @function
\name:
	.endm
	.macro	finish name
	.size	\name, . - \name
	.endm

/* ---- short ------------------------------------------------------------------------------------------------------ */

/* One byte, side by side, without padding. */
	.p2align 6
	function corner_ret_a
	ret
	finish	corner_ret_a
	function corner_ret_b
	ret
	finish	corner_ret_b
	function corner_ret_c
	ret
	finish	corner_ret_c

/* Less than five bytes, side by side: a; 0; 7; a + 1. */
	function corner_same
	mov	%rdi, %rax
	ret
	finish	corner_same
	function corner_zero
	xor	%eax, %eax
	ret
	finish	corner_zero
	function corner_seven
	push	$7
	pop	%rax
	ret
	finish	corner_seven
	function corner_lea_ret
	lea	1(%rdi), %rax
	ret
	finish	corner_lea_ret

/* ---- branches into windows -------------------------------------------------------------------------------------- */

/* a + 2 by going over short jumps, one of them to where it goes anyway. */
	.p2align 4
	function corner_jump_next
	jmp	1f
1:	inc	%rdi
	.byte	0xeb, 0x00
	inc	%rdi
	mov	%rdi, %rax
	jmp	2f
	ud2
2:	ret
	finish	corner_jump_next

/* The number of rounds until a is 0, by a jcc to the first byte. */
	.p2align 4
	function corner_jcc_back
	dec	%rdi
	jnz	corner_jcc_back
	mov	%rdi, %rax
	ret
	finish	corner_jcc_back

/* a, by a jcc to the second instruction. */
	function corner_jcc_inside
	xor	%eax, %eax
1:	inc	%rax
	cmp	%rdi, %rax
	jb	1b
	ret
	finish	corner_jcc_inside

/* a rounds of loop, loope and loopne, each into itself or close by: 3 * a for a > 0. */
	function corner_loop
	mov	%rdi, %rcx
1:	loop	1b
	lea	(%rdi,%rdi), %rax
	mov	%rdi, %rcx
	xor	%edx, %edx
2:	nop
	loope	2b
	mov	%rdi, %rcx
	or	$1, %edx
3:	loopne	3b
	add	%rdi, %rax
	add	%rcx, %rax
	ret
	finish	corner_loop

/* 1 where a is 0, 2 where its low half is, else 3. */
	function corner_jrcxz
	mov	%rdi, %rcx
	mov	$1, %eax
	jrcxz	1f
	inc	%eax
	jecxz	1f
	inc	%eax
1:	ret
	finish	corner_jrcxz

/* A long jcc over a long way, and each condition once: the number of those that are true for a - b. */
	function corner_conditions
	xor	%eax, %eax
	.irp	condition, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	cmp	%rsi, %rdi
	j\condition	1f
	jmp	2f
1:	inc	%eax
2:
	.endr
	cmp	%rsi, %rdi
	je	.Lfar
.Lnear:	ret
	.nops	200
.Lfar:	add	$100, %eax
	jmp	.Lnear
	finish	corner_conditions

/* Into a part elsewhere, and back into the middle: |a| + 1. */
	function corner_hot
	mov	%rdi, %rax
	test	%rdi, %rdi
	js	corner_hot.cold
.Lhot:	inc	%rax
	ret
	finish	corner_hot
	.section .text.unlikely, "ax", @progbits
	.type	corner_hot.cold, @function
corner_hot.cold:
	neg	%rax
	jmp	.Lhot
	.size	corner_hot.cold, . - corner_hot.cold
	.text

/* For ever. */
	.p2align 4
	function corner_spin
	jmp	corner_spin
	finish	corner_spin

/* ---- tables and data -------------------------------------------------------------------------------------------- */

/* 10, 21, 32 or 43 for a & 3, by a table in the text behind the function. */
	function corner_table
	and	$3, %edi
	lea	.Ltable(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
.Lcase0:
	mov	$10, %eax
	ret
.Lcase1:
	push	$21
	pop	%rax
	ret
.Lcase2:
	mov	$32, %al
	movzbl	%al, %eax
	ret
.Lcase3:
	mov	$43, %eax
	ret
	finish	corner_table
	.p2align 2
.Ltable:
	.long	.Lcase0 - .Ltable, .Lcase1 - .Ltable, .Lcase2 - .Ltable, .Lcase3 - .Ltable

/* The byte a & 7 of a constant that lies in the function, jumped over. */
	function corner_data_in_text
	and	$7, %edi
	jmp	corner_behind_data
	.type	corner_data, @object
corner_data:
	.ascii	"\xe9\x0f\x05\xcc\xc3\xeb\xfe\xf0"
	.size	corner_data, . - corner_data
corner_behind_data:
	lea	corner_data(%rip), %rax
	movzbl	(%rax,%rdi), %eax
	ret
	finish	corner_data_in_text

/* ---- lines and pages -------------------------------------------------------------------------------------------- */

/* a + 5: a site of one byte at the end of a cache line, one of three and one of five bytes across. */
	.p2align 6
	.skip	63, 0xcc
	function corner_line
	push	%rdi
	pop	%rax
	.nops	60
	add	$5, %rax
	.p2align 6
	.nops	61
	mov	$0, %ecx
	add	%rcx, %rax
	ret
	finish	corner_line

/* The same with pages. */
	.p2align 12, 0xcc
	.skip	4095, 0xcc
	function corner_page
	push	%rdi
	pop	%rax
	jmp	1f
	.p2align 12, 0xcc
	.skip	4096 - 12, 0xcc
1:	add	$1, %rax
	add	$2, %rax
	xor	%ecx, %ecx
	nop
	add	$2, %rax
	nop
	mov	%ecx, %edx
	jmp	2f
	.p2align 12, 0xcc
	.skip	4094, 0xcc
2:	mov	$0, %ecx
	add	%rcx, %rax
	ret
	finish	corner_page

/* ---- calls through the stack ------------------------------------------------------------------------------------ */

/* a + 1 and a + 2, by call *(%rsp) and call *-136(%rsp). */
	.p2align 4
	function corner_call_stack
	lea	corner_lea_ret(%rip), %rax
	push	%rax
	call	*(%rsp)
	pop	%rcx
	ret
	finish	corner_call_stack
	function corner_call_below
	sub	$8, %rsp
	lea	corner_lea_ret(%rip), %rax
	mov	%rax, -136(%rsp)
	call	*-136(%rsp)
	inc	%rax
	add	$8, %rsp
	ret
	finish	corner_call_below

/* Where a call pushes the address behind it, which the function returns: the difference to what it should be, 0. */
	function corner_return_address
	call	1f
1:	pop	%rax
	lea	1b(%rip), %rcx
	sub	%rcx, %rax
	ret
	finish	corner_return_address

/* ---- stack, flags ----------------------------------------------------------------------------------------------- */

/* A leaf that keeps all of its 16 words below the stack pointer: 16 * a + 120. */
	function corner_redzone
	.set	i, 0
	.rept	16
	lea	i(%rdi), %rax
	mov	%rax, -8 - 8 * i(%rsp)
	.set	i, i + 1
	.endr
	xor	%eax, %eax
	.set	i, 0
	.rept	16
	add	-8 - 8 * i(%rsp), %rax
	.set	i, i + 1
	.endr
	ret
	finish	corner_redzone

/* Sets the status flags to those in a, goes over all kinds of instructions that leave them alone, and returns them. */
	function corner_flags
	push	%rdi
	popf
	nop
	mov	%rdi, %rax
	lea	8(%rsi), %rcx
	push	%rcx
	pop	%rdx
	xchg	%rcx, %rdx
	not	%rdx
	movabs	$0x123456789abcdef0, %r8
	jmp	1f
1:	bswap	%r8
	cmovc	%rdx, %r9
	pushf
	pop	%rax
	cld
	ret
	finish	corner_flags

/* a + b + c of two carries, through adc with sites between. */
	function corner_carry
	xor	%eax, %eax
	add	%rsi, %rdi
	nop
	adc	$0, %rax
	stc
	mov	%rax, %rdx
	adc	$0, %rax
	clc
	lea	(%rax), %rax
	adc	%rdi, %rax
	ret
	finish	corner_carry

/* ---- special instructions --------------------------------------------------------------------------------------- */

/* Copies b bytes from c (%rdx) to a, by parts, fills and compares: 0 when all is well. */
	function corner_strings
	mov	%rsi, %r8
	mov	%rdi, %r9
	mov	%rsi, %rcx
	mov	%rdx, %rsi
	rep movsb
	mov	%r9, %rdi
	mov	%rdx, %rsi
	mov	%r8, %rcx
	cmp	%ecx, %ecx
	repe cmpsb
	mov	%rcx, %r10
	mov	%r9, %rdi
	mov	%r8, %rcx
	mov	$0x5a, %al
	rep stosb
	mov	%r9, %rdi
	mov	%r8, %rcx
	mov	$0x5b, %al
	test	%r8, %r8
	repne scasb
	lea	(%rcx,%r10), %rax
	mov	%r9, %rdi
	mov	%r8, %rcx
	shr	$3, %rcx
	mov	%rdx, %rsi
	rep movsq
	ret
	finish	corner_strings

/* The word at a is made b larger, by LOCKed instructions; what it was comes back. */
	function corner_lock
	mov	(%rdi), %rax
	lock incq (%rdi)
	lock decq (%rdi)
	lock orq $0, (%rdi)
	mov	%rsi, %rcx
	lock xadd %rcx, (%rdi)
	mov	%rcx, %rax
	lea	(%rcx,%rsi), %rdx
	push	%rax
	mov	%rdx, %rax
	lock cmpxchg %rdx, (%rdi)
	pop	%rax
	jne	1f
	ret
1:	mov	$-1, %rax
	ret
	finish	corner_lock

/* The 16 bytes at a (aligned) become what they are, by cmpxchg16b: 1. */
	function corner_lock16
	push	%rbx
	mov	(%rdi), %rax
	mov	8(%rdi), %rdx
	mov	%rax, %rbx
	mov	%rdx, %rcx
	lock cmpxchg16b (%rdi)
	sete	%al
	movzbl	%al, %eax
	pop	%rbx
	ret
	finish	corner_lock16

/* a + 1; begins as functions do that indirect jumps may reach. */
	function corner_endbr
	endbr64
	mov	%rdi, %rax
	inc	%rax
	ret
	finish	corner_endbr

/* A call and a jump to it, through registers. */
	function corner_indirect
	endbr64
	lea	corner_endbr(%rip), %rax
	call	*%rax
	mov	%rax, %rdi
	lea	corner_endbr(%rip), %rcx
	jmp	*%rcx
	finish	corner_indirect

/* getpid, by number; then a call with six arguments that fails: its errno is added to the pid. */
	function corner_syscall
	mov	$39, %eax
	syscall
	mov	%rax, corner_saved(%rip)
	mov	$9, %eax
	xor	%edi, %edi
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	mov	$-1, %r8
	xor	%r9d, %r9d
	syscall
	neg	%rax
	add	corner_saved(%rip), %rax
	ret
	finish	corner_syscall

/* What cpuid, rdtsc, xgetbv, pushf and leave do beside their result. */
	function corner_frames
	push	%rbp
	mov	%rsp, %rbp
	sub	$32, %rsp
	and	$-32, %rsp
	mov	%rdi, (%rsp)
	push	%rbx
	xor	%eax, %eax
	cpuid
	pop	%rbx
	xor	%ecx, %ecx
	xgetbv
	rdtsc
	mov	(%rsp), %rax
	enter	$16, $0
	mov	%rax, -8(%rbp)
	mov	-8(%rbp), %rax
	leave
	leave
	ret	$0
	finish	corner_frames

	.local	corner_saved
	.comm	corner_saved, 8, 8

	.section .note.GNU-stack, "", @progbits
