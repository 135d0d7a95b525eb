/*
 * Resolvers of indirect functions in the forms that compilers give them, and what each may return. Only looked at, never run.
 */
	.intel_syntax noprefix

	.macro function name
	.balign	16
\name:
	.pushsection resolver_functions, "aw"
	.balign	8
	.quad	2f, \name, 1f
	.popsection
	.pushsection .rodata
2:	.asciz	"\name"
	.popsection
	.endm

	.macro end
1:
	.endm

	/* The function before may return `functions`, or is refused for a reason with `reason` in it. */
	.macro returns name, first, second=0, third=0
	.pushsection resolver_expected, "aw"
	.balign	8
	.quad	\name, \first, \second, \third, 0
	.popsection
	.endm

	.macro refused name, reason
	.pushsection .rodata
3:	.asciz	"\reason"
	.popsection
	.pushsection resolver_expected, "aw"
	.balign	8
	.quad	\name, 0, 0, 0, 3b
	.popsection
	.endm

	.section resolver_data, "aw"
	.globl	resolver_got
	.balign	8
	/* Words that the test takes for those of a GOT; then one that it does not. */
resolver_got:
got_f:	.quad	f
got_g:	.quad	g
got_0:	.quad	0
variable: .quad	f

	.section resolver_code, "ax"
	.globl	resolver_text, resolver_text_end
resolver_text:

	function f
	ret
	end
	function g
	ret
	end
	function h
	nop
inner:	ret
	end

	function by_lea
	endbr64
	lea	rax, [rip + f]
	ret
	end
	returns by_lea, f

	function by_branches
	test	edi, edi
	js	4f
	lea	rdx, [rip + f]
	lea	rax, [rip + g]
	cmovne	rax, rdx
	ret
4:	lea	rax, [rip + h]
	ret
	end
	returns by_branches, f, g, h

	function by_register_kept_over_a_call
	push	rbx
	lea	rbx, [rip + g]
	call	f
	test	eax, eax
	mov	rax, rbx
	pop	rbx
	ret
	end
	returns by_register_kept_over_a_call, g

	/* What another place has is not what comes here. */
	function after_overwriting
	lea	rax, [rip + f]
	lea	rax, [rip + g]
	ret
	end
	returns after_overwriting, g

	function or_nothing
	xor	eax, eax
	test	edi, edi
	je	4f
	lea	rax, [rip + f]
4:	ret
	end
	returns or_nothing, f

	function by_got
	mov	rax, [rip + got_f]
	test	edi, edi
	cmove	rax, [rip + got_g]
	ret
	end
	returns by_got, f, g

	function by_frame
	push	rbp
	mov	rbp, rsp
	sub	rsp, 32
	mov	[rbp - 20], edi
	call	f
	test	eax, eax
	je	4f
	lea	rax, [rip + f]
	mov	[rbp - 8], rax
	jmp	5f
4:	lea	rax, [rip + g]
	mov	[rbp - 8], rax
5:	mov	rax, [rbp - 8]
	leave
	ret
	end
	returns by_frame, f, g

	/* The second store is met when the load was gone through already. */
	function by_frame_in_a_loop
	push	rbp
	mov	rbp, rsp
	lea	rax, [rip + f]
	mov	[rbp - 8], rax
4:	mov	rax, [rbp - 8]
	test	edi, edi
	je	5f
	lea	rcx, [rip + h]
	mov	[rbp - 8], rcx
	dec	edi
	jmp	4b
5:	pop	rbp
	ret
	end
	returns by_frame_in_a_loop, f, h

	function by_tail_jump
	test	edi, edi
	lea	rax, [rip + h]
	jne	by_lea
	jmp	by_branches
	end
	returns by_tail_jump, f, g, h

	function that_may_abort
	test	edi, edi
	je	4f
	lea	rax, [rip + g]
	ret
4:	call	f
	end
	/* Nothing of it follows the call. */
	function behind_the_abort
	lea	rax, [rip + f]
	ret
	end
	returns that_may_abort, g

	function that_traps
	lea	rax, [rip + g]
	test	edi, edi
	je	4f
	ret
4:	ud2
	end
	returns that_traps, g

	function by_call
	sub	rsp, 8
	call	by_lea
	add	rsp, 8
	ret
	end
	refused by_call, "what it returns at 0x"

	function by_vdso
	mov	rax, [rip + got_f]
	mov	rax, [rax + 8]
	test	rax, rax
	jne	4f
	lea	rax, [rip + f]
4:	ret
	end
	refused by_vdso, "what it returns at 0x"

	function by_variable
	mov	rax, [rip + variable]
	ret
	end
	refused by_variable, "what it returns at 0x"

	function by_other_module
	mov	rax, [rip + got_0]
	ret
	end
	refused by_other_module, "what it returns at 0x"

	function by_inner_label
	lea	rax, [rip + inner]
	ret
	end
	refused by_inner_label, "what it returns at 0x"

	function by_half_a_register
	lea	rcx, [rip + f]
	mov	eax, ecx
	ret
	end
	refused by_half_a_register, "what it returns at 0x"

	function by_sum
	lea	rax, [rip + f]
	add	rax, rdi
	ret
	end
	refused by_sum, "what it returns at 0x"

	function by_byte
	lea	rax, [rip + f]
	mov	al, dil
	ret
	end
	refused by_byte, "what it returns at 0x"

	function by_exchange
	lea	rax, [rip + f]
	xchg	rax, rdi
	ret
	end
	refused by_exchange, "what it returns at 0x"

	/* The slot's address is out: others may write there. */
	function by_frame_that_leaked
	push	rbp
	mov	rbp, rsp
	sub	rsp, 16
	lea	rax, [rip + f]
	mov	[rbp - 8], rax
	lea	rdi, [rbp - 8]
	call	g
	mov	rax, [rbp - 8]
	leave
	ret
	end
	refused by_frame_that_leaked, "what it returns at 0x"

	function by_frame_in_halves
	push	rbp
	mov	rbp, rsp
	lea	rax, [rip + f]
	mov	[rbp - 8], rax
	mov	dword ptr [rbp - 4], edi
	mov	rax, [rbp - 8]
	pop	rbp
	ret
	end
	refused by_frame_in_halves, "what it returns at 0x"

	function by_frame_through_the_stack_pointer
	push	rbp
	mov	rbp, rsp
	sub	rsp, 16
	lea	rax, [rip + f]
	mov	[rbp - 8], rax
	mov	[rsp + 8], rdi
	mov	rax, [rbp - 8]
	leave
	ret
	end
	refused by_frame_through_the_stack_pointer, "what it returns at 0x"

	function by_callers_frame
	mov	rax, [rbp - 8]
	ret
	end
	refused by_callers_frame, "what it returns at 0x"

	function by_jump_table
	lea	rax, [rip + f]
	jmp	rdi
	end
	refused by_jump_table, "where it jumps to at 0x"

	function to_nowhere
	test	edi, edi
	je	resolver_text + 0x100000
	lea	rax, [rip + f]
	ret
	end
	refused to_nowhere, "where no instruction is"

	function of_nothing
	xor	eax, eax
	ret
	end
	refused of_nothing, "it returns no function"

	function without_end
4:	jmp	4b
	end
	refused without_end, "it returns no function"

	function too_long
	.rept	3000
	nop
	.endr
	lea	rax, [rip + f]
	ret
	end
	refused too_long, "it has more than 2048 instructions"

resolver_text_end:
	.section .note.GNU-stack, "", @progbits
