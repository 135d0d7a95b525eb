/* Functions for corners.c the operands of which are relative to the program counter, or vectors. */
	.macro	function name
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.endm
	.macro	finish name
	.size	\name, . - \name
	.endm

	.data
	.p2align 6
.Lwords:	.quad	0, 0, 0, 0
.Lbytes:	.byte	15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
	.p2align 6
.Lvectors:
	.set	i, 0
	.rept	16
	.long	i
	.set	i, i + 1
	.endr
.Lsingles:	.float	1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5
.Ldoubles:	.double	0.5, 0.25
.Lpointer:	.quad	corner_add_one
	.text

/* a + 1 */
	function corner_add_one
	lea	1(%rdi), %rax
	ret
	finish	corner_add_one

/* Loads, stores and arithmetic of all widths, with immediates behind the displacement: a + 100. */
	function corner_rip_integer
	movq	%rdi, .Lwords(%rip)
	movb	$1, .Lwords+8(%rip)
	movw	$0x102, .Lwords+10(%rip)
	movl	$0x10203, .Lwords+12(%rip)
	movq	$-2, .Lwords+16(%rip)
	addq	$2, .Lwords+16(%rip)
	cmpq	$0, .Lwords+16(%rip)
	jne	1f
	cmpw	$0x102, .Lwords+10(%rip)
	jne	1f
	cmpb	$1, .Lwords+8(%rip)
	jne	1f
	testl	$0x10000, .Lwords+12(%rip)
	je	1f
	mov	.Lwords(%rip), %rax
	xor	.Lwords+16(%rip), %rax
	sub	%rax, .Lwords(%rip)
	incq	.Lwords(%rip)
	decq	.Lwords(%rip)
	notq	.Lwords(%rip)
	negq	.Lwords(%rip)
	decq	.Lwords(%rip)
	shlq	$3, .Lwords(%rip)
	btsq	$2, .Lwords(%rip)
	imulq	$25, .Lwords(%rip), %rcx
	add	%rcx, %rax
	movzbl	.Lwords+8(%rip), %ecx
	movswl	.Lwords+10(%rip), %edx
	lea	-0x103(%rcx,%rdx), %rdx
	add	%rdx, %rax
	lea	.Lwords(%rip), %rdx
	lea	.Lwords+8(%rip), %rcx
	sub	%rdx, %rcx
	lea	-8(%rax,%rcx), %rax
	ret
1:	xor	%eax, %eax
	ret
	finish	corner_rip_integer

/* xchg, xadd, cmpxchg, cmpxchg16b, LOCKed ones, push, pop: a. */
	function corner_rip_exchange
	push	%rbx
	movq	$5, .Lwords(%rip)
	xchg	%rdi, .Lwords(%rip)
	xadd	%rdi, .Lwords(%rip)
	lock subq $5, .Lwords(%rip)
	mov	%rdi, %rax
	mov	%rdi, %rcx
	lock cmpxchg %rcx, .Lwords(%rip)
	jne	1f
	cmpxchg	%rcx, .Lwords(%rip)
	jne	1f
	lock xadd %rax, .Lwords(%rip)
	sub	%rax, .Lwords(%rip)
	mov	.Lwords(%rip), %rax
	mov	.Lwords+8(%rip), %rdx
	mov	%rax, %rbx
	mov	%rdx, %rcx
	lock cmpxchg16b .Lwords(%rip)
	jne	1f
	pushq	.Lwords(%rip)
	popq	.Lwords+16(%rip)
	mov	.Lwords+16(%rip), %rax
	pop	%rbx
	ret
1:	mov	$-1, %rax
	pop	%rbx
	ret
	finish	corner_rip_exchange

/* Calls and a jump through a pointer: a + 3. */
	function corner_rip_branch
	call	*.Lpointer(%rip)
	mov	%rax, %rdi
	sub	$8, %rsp
	call	corner_add_one
	add	$8, %rsp
	mov	%rax, %rdi
	jmp	*.Lpointer(%rip)
	finish	corner_rip_branch

/* SSE: integers, singles, doubles, conversions, with an immediate: a + 4. */
	function corner_rip_sse
	movq	%rdi, %xmm0
	movdqa	.Lvectors(%rip), %xmm1
	paddd	.Lvectors(%rip), %xmm1
	pshufd	$0x1b, .Lvectors(%rip), %xmm2
	pshufb	.Lbytes(%rip), %xmm2
	pshufb	.Lbytes(%rip), %xmm2
	psrldq	$8, %xmm1
	movd	%xmm1, %ecx
	movups	.Lsingles(%rip), %xmm3
	addps	.Lsingles(%rip), %xmm3
	mulss	.Lsingles+4(%rip), %xmm3
	ucomiss	.Lsingles+24(%rip), %xmm3
	jne	1f
	movsd	.Ldoubles(%rip), %xmm4
	divsd	.Ldoubles+8(%rip), %xmm4
	ucomisd	.Lzero(%rip), %xmm4
	je	1f
	cvtsi2sdl .Lvectors+8(%rip), %xmm5
	cvttsd2si %xmm5, %edx
	movdqu	%xmm0, .Lwords(%rip)
	pinsrw	$0, .Lvectors+4(%rip), %xmm0
	movq	.Lwords(%rip), %xmm0
	movq	%xmm0, %rax
	cmp	%edx, 2*4+.Lvectors(%rip)
	jne	1f
	add	%rcx, %rax
	ret
1:	xor	%eax, %eax
	ret
	finish	corner_rip_sse
	.section .rodata
	.p2align 4
.Lzero:	.quad	0, 0
	.text

/* The old floating point unit: a + 2, by way of memory. */
	function corner_rip_x87
	movq	%rdi, .Lwords(%rip)
	fildq	.Lwords(%rip)
	fldl	.Ldoubles(%rip)
	fldl	.Ldoubles+8(%rip)
	fdivrp
	fchs
	fabs
	fldl	.Ldoubles(%rip)
	fmulp
	fadds	.Lone(%rip)
	faddp
	fldcw	.Lcontrol(%rip)
	fistpq	.Lwords(%rip)
	mov	.Lwords(%rip), %rax
	inc	%rax
	dec	%rax
	ret
	finish	corner_rip_x87
	.section .rodata
	.p2align 3
.Lone:	.float	1
.Lcontrol:	.word	0x37f
	.text

/* AVX and AVX2, BMI, FMA: a + 10. */
	function corner_rip_avx
	vmovdqa	.Lvectors(%rip), %ymm0
	vpaddd	.Lvectors(%rip), %ymm0, %ymm1
	vextracti128 $1, %ymm1, %xmm2
	vmovd	%xmm2, %ecx
	vmovups	.Lsingles(%rip), %ymm3
	vfmadd132ps .Lsingles(%rip), %ymm3, %ymm3
	vblendps $0x0f, .Lsingles(%rip), %ymm3, %ymm4
	vbroadcastss .Lsingles(%rip), %ymm5
	vpermq	$0x1b, .Lvectors(%rip), %ymm6
	vucomiss .Lsingles(%rip), %xmm4
	jne	1f
	andn	.Lvectors(%rip), %rdi, %rdx
	rorx	$63, .Lvectors+8(%rip), %rdx
	vmovdqu	%ymm0, .Lwords-32+32(%rip)
	lea	2(%rdi,%rcx), %rax
	vzeroupper
	ret
1:	xor	%eax, %eax
	vzeroupper
	ret
	finish	corner_rip_avx

/* AVX-512: masked, broadcast, with compressed displacements elsewhere: a + 30. */
	function corner_rip_evex
	vmovdqa64 .Lvectors(%rip), %zmm16
	vpaddd	.Lvectors(%rip), %zmm16, %zmm17
	vpaddd	.Lvectors+60(%rip){1to16}, %zmm16, %zmm18
	mov	$0x8000, %ecx
	kmovw	%ecx, %k1
	vpternlogd $0xff, .Lvectors(%rip), %zmm19, %zmm19{%k1}{z}
	vpcompressd %zmm17, %zmm20{%k1}{z}
	vmovd	%xmm20, %ecx
	vpcmpeqd .Lvectors(%rip), %zmm16, %k2
	kmovw	%k2, %edx
	cmp	$0xffff, %edx
	jne	1f
	kmovw	.Lwords(%rip), %k3
	lea	(%rdi,%rcx), %rax
	vzeroupper
	ret
1:	xor	%eax, %eax
	vzeroupper
	ret
	finish	corner_rip_evex

/* Gathers with vectors of indices: a + 1 + 3 + 5 + 7. */
	function corner_gather
	lea	.Lvectors(%rip), %rsi
	vmovdqu	.Lvectors(%rip), %xmm1
	vpslld	$1, %xmm1, %xmm1	# of memory it would be an instruction of AVX-512
	vpcmpeqd %xmm2, %xmm2, %xmm2
	vpxor	%xmm0, %xmm0, %xmm0
	vpgatherdd %xmm2, 4(%rsi,%xmm1,4), %xmm0
	vphaddd	%xmm0, %xmm0, %xmm0
	vphaddd	%xmm0, %xmm0, %xmm0
	vmovd	%xmm0, %eax
	add	%rdi, %rax
	ret
	finish	corner_gather

	function corner_gather_evex
	lea	.Lvectors(%rip), %rsi
	vpslld	$1, .Lvectors(%rip), %xmm1
	kxnorw	%k1, %k1, %k1
	vpxor	%xmm0, %xmm0, %xmm0
	vpgatherdd 4(%rsi,%xmm1,4), %xmm0{%k1}
	vphaddd	%xmm0, %xmm0, %xmm0
	vphaddd	%xmm0, %xmm0, %xmm0
	vmovd	%xmm0, %eax
	add	%rdi, %rax
	ret
	finish	corner_gather_evex

/* ---- state that is live across sites ---------------------------------------------------------------------------- */

/* Loads all vectors and masks from a (2,048 + 64 bytes), goes over sites, and stores them to b. */
	function corner_zmm_live
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu64 64*\n(%rdi), %zmm\n
	.endr
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovdqu64 64*\n(%rdi), %zmm\n
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	2048+8*\n(%rdi), %k\n
	.endr
	nop
	mov	%rdi, %rax
	push	%rax
	pop	%rcx
	xor	%eax, %eax
	inc	%rax
	lea	(%rax,%rax), %rdx
	jmp	1f
1:	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu64 %zmm\n, 64*\n(%rsi)
	.endr
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovdqu64 %zmm\n, 64*\n(%rsi)
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	%k\n, 2048+8*\n(%rsi)
	.endr
	vzeroupper
	ret
	finish	corner_zmm_live

/* The same with 16 ymm registers: 512 bytes. */
	function corner_ymm_live
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu	32*\n(%rdi), %ymm\n
	.endr
	nop
	push	%rdi
	pop	%rcx
	xor	%eax, %eax
	lea	(%rax,%rax), %rdx
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu	%ymm\n, 32*\n(%rsi)
	.endr
	vzeroupper
	ret
	finish	corner_ymm_live

	.section .note.GNU-stack, "", @progbits
