/*
 * slots.call on x86-64: from a marker to C and back.
 *
 * The marker has made the frame of marker_x86_64.h below the red zone and called this: rdx has its slots; rax, rdx, r10 and r11 may change, and nothing else.
 * The compiler of the marker's function knows of no call. So rcx, rsi, rdi, r8, r9 go onto the stack. The instruction
 * that the kernel itself uses saves what C may change of the vector, mask, x87 and (APX) r16 to r31 registers. The C side
 * gets an empty x87 stack: the marker's function may hold long doubles there.
 *
 * What an unwinder must know: the caller's stack pointer, as its own tables have it, is 224 bytes above the end of the return address. That is the frame's CFA here.
 *
 *	rbp + 48	the arguments
 *	rbp + 8		return address
 *	rbp		rbp
 *	rbp - 48	rbx, rcx, rsi, rdi, r8, r9
 *	below, at 64 bytes	the area of XSAVEC, XSAVE or FXSAVE
 */
	.text

	.globl	kymo_lib_call
	.hidden	kymo_lib_call
	.type	kymo_lib_call, @function
	.p2align 6
kymo_lib_call:
	.cfi_startproc
	.cfi_def_cfa %rsp, 232
	.cfi_offset %rip, -232
	endbr64
	push	%rbp
	.cfi_def_cfa_offset 240
	.cfi_offset %rbp, -240
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%rbx
	.cfi_offset %rbx, -248
	push	%rcx
	.cfi_offset %rcx, -256
	push	%rsi
	.cfi_offset %rsi, -264
	push	%rdi
	.cfi_offset %rdi, -272
	push	%r8
	.cfi_offset %r8, -280
	push	%r9
	.cfi_offset %r9, -288
	mov	%rdx, %rdi
	lea	48(%rbp), %rsi
	sub	kymo_lib_state_size(%rip), %rsp
	and	$-64, %rsp
	mov	kymo_lib_state_mask(%rip), %eax
	xor	%edx, %edx
	mov	kymo_lib_state_how(%rip), %ebx
	cmp	$1, %ebx
	jb	2f
	/* Of its header XSAVEC writes the first 16 bytes, XSAVE 8; XRSTOR wants the rest to be 0. */
	mov	$0, %ecx			/* keeps the flags */
	mov	%rcx, 512(%rsp)
	mov	%rcx, 512 + 8(%rsp)
	mov	%rcx, 512 + 16(%rsp)
	mov	%rcx, 512 + 24(%rsp)
	mov	%rcx, 512 + 32(%rsp)
	mov	%rcx, 512 + 40(%rsp)
	mov	%rcx, 512 + 48(%rsp)
	mov	%rcx, 512 + 56(%rsp)
	je	1f
	xsavec64 (%rsp)
	jmp	3f
1:	xsave64	(%rsp)
	jmp	3f
2:	fxsave64 (%rsp)
3:	emms
	call	kymo_lib_pass
	mov	kymo_lib_state_mask(%rip), %eax
	xor	%edx, %edx
	test	%ebx, %ebx
	je	4f
	xrstor64 (%rsp)
	jmp	5f
4:	fxrstor64 (%rsp)
5:	lea	-48(%rbp), %rsp
	pop	%r9
	.cfi_restore %r9
	pop	%r8
	.cfi_restore %r8
	pop	%rdi
	.cfi_restore %rdi
	pop	%rsi
	.cfi_restore %rsi
	pop	%rcx
	.cfi_restore %rcx
	pop	%rbx
	.cfi_restore %rbx
	pop	%rbp
	.cfi_restore %rbp
	.cfi_def_cfa %rsp, 232
	ret
	.cfi_endproc
	.size	kymo_lib_call, . - kymo_lib_call

/* A slots.call and rings.slow that does nothing. */
	.globl	kymo_lib_nothing
	.hidden	kymo_lib_nothing
	.type	kymo_lib_nothing, @function
	.p2align 4
kymo_lib_nothing:
	.cfi_startproc
	.cfi_def_cfa %rsp, 232
	.cfi_offset %rip, -232
	endbr64
	ret
	.cfi_endproc
	.size	kymo_lib_nothing, . - kymo_lib_nothing

	.section .note.GNU-stack, "", @progbits
