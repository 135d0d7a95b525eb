/*
 * Functions as Go's compiler makes them, for test_stacks.c. `fn` and `endfn` bound one; `looks` is how nearly all begin, `grows` how they end.
 */
	.macro fn name
	.balign 16, 0xcc
	.globl \name
	.pushsection stacks_functions,"aw",@progbits
	.quad \name, \name\()_end
	.popsection
\name:
	.endm

	.macro endfn name
\name\()_end:
	.endm

	.macro at name
	.globl \name
\name:
	.endm

	.macro looks
	cmp 0x10(%r14), %rsp
	jbe 9f
	.endm

	.macro grows name, to=morestack
9:	mov %rax, 8(%rsp)
	call \to
	mov 8(%rsp), %rax
	jmp \name
	.endm

	.macro frame size
	sub $\size, %rsp
	mov %rax, 8(%rsp)
	.endm

	.macro done size
	add $\size, %rsp
	ret
	.endm

	.text
	.globl stacks_text, stacks_text_end
stacks_text:
fn morestack
	mov (%rsp), %rax
	ret
endfn morestack

fn morestack_of_late
	mov (%rsp), %rax
	ret
endfn morestack_of_late

/* ---- a chain as deep as may be ---- */

fn body
	looks
	frame 1000
	at body_inside
	call first
	done 1000
	grows body
endfn body

/* Depth 8. */
fn first
	frame 200
	at first_inside
	call second
	done 200
endfn first

/* Depth 216: behind its frame 384 are left, which is enough. */
fn second
	frame 200
	at second_inside
	call third
	call late
	done 200
endfn second

/* Depth 424. */
fn third
	mov %rax, %rcx
	frame 16
	at third_inside
	done 16
endfn third

/* Depth 424, too; it looks. */
fn late
	at late_look
	looks
	at late_inside
	frame 4000
	done 4000
	at late_fails
	grows late, morestack_of_late
endfn late

/* ---- ways to look ---- */

	.macro form name
fn \name
	.endm
	.macro checked name
	at \name\()_inside
	frame 3000
	done 3000
	grows \name
endfn \name
	.endm

form larger_frame
	lea -0x158(%rsp), %r12
	cmp 0x10(%r14), %r12
	jbe 9f
checked larger_frame

form by_thread
	mov %fs:0xfffffffffffffff8, %rcx
	cmp 0x10(%rcx), %rsp
	jbe 9f
checked by_thread

form by_offset
	mov $-8, %rcx
	mov %fs:(%rcx), %rcx
	lea -0x158(%rsp), %rax
	cmp 0x18(%rcx), %rax
	jbe 9f
checked by_offset

form huge
	mov %rsp, %r12
	sub $0x100000, %r12
	jb 9f
	cmp 0x10(%r14), %r12
	jbe 9f
checked huge

form huge_before_1_17
	mov %fs:0xfffffffffffffff8, %rcx
	mov 0x10(%rcx), %rsi
	cmp $0xfffffffffffffade, %rsi
	je 9f
	lea 0x3a0(%rsp), %rax
	sub %rsi, %rax
	cmp $0x100320, %rax
	jbe 9f
checked huge_before_1_17

/* ---- what is no look ---- */

form another_word
	cmp 0x20(%r14), %rsp
	jbe 9f
checked another_word

form another_register
	cmp 0x10(%r13), %rsp
	jbe 9f
checked another_register

form overwritten
	mov %rax, %r14
	cmp 0x10(%r14), %rsp
	jbe 9f
checked overwritten

form another_jump
	cmp 0x10(%r14), %rsp
	jne 9f
checked another_jump

form two_places
	mov %rsp, %r12
	sub $0x100000, %r12
	jb 8f
	cmp 0x10(%r14), %r12
	jbe 9f
8:	nop
checked two_places

form after_a_push
	push %rax
	cmp 0x10(%r14), %rsp
	jbe 9f
checked after_a_push

fn no_morestack
	looks
	at no_morestack_inside
	frame 3000
	done 3000
9:	ud2
endfn no_morestack

fn entered_behind
	looks
	nop
	at entered_behind_inside
	frame 3000
	done 3000
	grows entered_behind
endfn entered_behind

fn enters_behind
	jmp entered_behind_inside
endfn enters_behind

/* ---- what takes stack ---- */

fn not_called
	mov %rax, %rcx
	frame 1000
	at not_called_inside
	done 1000
endfn not_called

fn begins_anew
	mov %rax, %rcx
	frame 1000
	test %rax, %rax
	jne begins_anew
	done 1000
endfn begins_anew

/* 8 bytes too much: 416 - 8 of depth = 408 fit. */
	.macro takes name
fn \name
	sub $376, %rsp
	.endm
	.macro took name
	at \name\()_inside
	mov %rax, %rcx
	mov %rbp, %rsp
	ret
endfn \name
	.endm

takes fits
	push %rax
	push %rcx
	pushf
	pop %rax
	sub $-120, %rsp
	lea 8(%rsp), %rsp
	lea -8(%rsp), %rsp
took fits

takes pushes
	push %rax
	push %rcx
	pushf
	push $8
	pop %rax
	push $8
took pushes

takes adds
	add $-40, %rsp
took adds

takes by_lea
	lea -40(%rsp), %rsp
took by_lea

takes aligns
	and $-64, %rsp
took aligns

fn by_register
	sub %rax, %rsp
	at by_register_inside
	mov %rax, %rcx
	ret
endfn by_register

fn by_much
	sub $0x7fffffff, %rsp
	at by_much_inside
	mov %rax, %rcx
	ret
endfn by_much

/* ---- what leads where ---- */

fn recursive
	mov %rax, %rcx
	frame 8
	call recursive
	done 8
endfn recursive

fn ping
	mov %rax, %rcx
	call pong
	ret
endfn ping

fn pong
	mov %rax, %rcx
	call ping
	ret
endfn pong

fn jumps
	sub $400, %rsp
	cmp $0, %rax
	je jumped_to
	ret
endfn jumps

fn jumped_to
	mov %rax, %rcx
	push %rax
	at jumped_to_inside
	mov %rax, %rcx
	ret
endfn jumped_to

fn falls
	sub $408, %rsp
	mov %rax, %rcx
	nopw 0(%rax,%rax)
	.skip (16 - (. - falls) % 16) % 16, 0x90
endfn falls

fn fallen_into
	push %rax
	at fallen_into_inside
	mov %rax, %rcx
	ret
endfn fallen_into

fn never_comes_back
	sub $408, %rsp
	call morestack
	.skip (16 - (. - never_comes_back) % 16) % 16, 0x90
endfn never_comes_back

fn not_fallen_into
	push %rax
	at not_fallen_into_inside
	mov %rax, %rcx
	ret
endfn not_fallen_into

/* What is called in its middle, as Duff's device is. */
fn calls_a_middle
	sub $400, %rsp
	call middle
	add $400, %rsp
	ret
endfn calls_a_middle

fn has_a_middle
	mov %rax, %rcx
middle:	mov %rax, %rcx
	push %rax
	at has_a_middle_inside
	mov %rax, %rdx
	ret
endfn has_a_middle

	.balign 16, 0xcc
stacks_go_end:
	.globl stacks_go_end
/* The work of another compiler. */
fn of_c
	sub $4000, %rsp
	at of_c_inside
	mov %rax, %rcx
	ret
endfn of_c
stacks_text_end:
	.section .note.GNU-stack,"",@progbits
