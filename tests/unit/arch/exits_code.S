/*
 * Functions that are left in all ways. `fn` and `endfn` bound one; `leaves` and `tail` stand before each instruction by which it
 * is left for good, as test_exits.c expects it. `label` is an address that a relocation names.
 */
	.macro fn name
	.pushsection exits_names,"a",@progbits
8:	.asciz "\name"
	.popsection
	.pushsection exits_functions,"aw",@progbits
	.quad 8b, \name, \name\()_end
	.popsection
\name:
	.endm

	.macro endfn name
\name\()_end:
	.endm

	.macro leaves
7:	.pushsection exits_marks,"aw",@progbits
	.quad 7b, 0, 0
	.popsection
	.endm

	.macro tail target=0
7:	.pushsection exits_marks,"aw",@progbits
	.quad 7b, \target, 1
	.popsection
	.endm

	.macro label
7:	.pushsection exits_labels,"aw",@progbits
	.quad 7b
	.popsection
	.endm

	.text
	.globl exits_text, exits_text_end
exits_text:
/* What is called here is a function, and no part of one. */
fn calls_all
	call callee
	call entered_inside
	call tail_shared
	call falls_into_next
	leaves
	ret
endfn calls_all

fn callee
	mov %edi, %eax
	leaves
	ret
endfn callee

fn returns
	test %edi, %edi
	je 1f
	js 2f
	jp 3f
	leaves
	ret
1:	leaves
	repz ret
2:	leaves
	ret $16
3:	leaves
	.byte 0xf2; ret	/* bnd */
endfn returns

stub:
	.byte 0xf2; jmp *pointer(%rip)
	nop

fn tail_calls
	test %edi, %edi
	je 1f
	js 2f
	push %rbx
	call callee
	pop %rbx
	tail callee
	jmp callee
1:	tail stub
	jmp stub
2:	sub $24, %rsp
	add $24, %rsp
	tail tail_calls
	jmp tail_calls
endfn tail_calls

fn tail_with_frame_pointer
	push %rbp
	mov %rsp, %rbp
	and $-32, %rsp
	sub %rdi, %rsp
	call callee
	leave
	tail callee
	jmp callee
endfn tail_with_frame_pointer

fn tail_indirect
	test %edi, %edi
	je 1f
	js 2f
	mov (%rdi), %rax
	tail
	jmp *%rax
1:	tail
	jmp *8(%rsi)
2:	tail
	jmp *pointer(%rip)
endfn tail_indirect

fn loops_to_its_start
	dec %edi
	jne loops_to_its_start
	leaves
	ret
endfn loops_to_its_start

fn never_returns
	push %rax
	test %edi, %edi
	je 1f
	ud2
1:	call callee
endfn never_returns

fn ends_in_a_system_call
	mov $15, %eax
	syscall
endfn ends_in_a_system_call

fn has_table
	cmp $2, %edi
	ja 1f
	lea table(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	leaves
	ret
2:	tail callee
	jmp callee
3:	xor %eax, %eax
	leaves
	ret
4:	ud2
	.pushsection exits_rodata,"a",@progbits
	.p2align 2
table:	.long 2b - table, 3b - table, 4b - table, table_cold - table
	.popsection
endfn has_table

/* Reached by the table alone. */
fn table_cold
	mov $1, %eax
	leaves
	ret
endfn table_cold

fn has_labels
	push %rbx
	mov %rdi, %rbx
1:	movzbl (%rbx), %eax
	inc %rbx
	jmp *(%rsi,%rax,8)
	label
	call callee
	jmp 1b
	label
	pop %rbx
	leaves
	ret
endfn has_labels

fn may_have_labels
	mov (%rdi), %rax
	jmp *(%rsi,%rax,8)
	label
	xor %eax, %eax
	ret
	label
	ret
endfn may_have_labels

/* The label may be a landing pad. */
fn takes_its_frame_down
	push %rbx
	call callee
	mov (%rax), %rax
	pop %rbx
	tail
	jmp *16(%rax)
	label
	call callee
endfn takes_its_frame_down

fn has_cold_parts
	push %rbx
	test %edi, %edi
	je has_cold_parts_cold
	js 2f
1:	pop %rbx
	leaves
	ret
2:	jmp 3f
endfn has_cold_parts

fn has_cold_parts_cold
	call callee
	jmp 1b
3:	add $8, %rsp
	leaves
	ret
endfn has_cold_parts_cold

/* No frame, and the part does not come back: the condition tells. */
fn has_cold_part_at_once
	test %edi, %edi
	je cold_at_once
	leaves
	ret
endfn has_cold_part_at_once

fn cold_at_once
	push %rax
	call callee
	pop %rcx
	leaves
	ret
endfn cold_at_once

/* Entered by an unwinder alone. */
fn has_handler
	push %rbx
	call callee
1:	pop %rbx
	leaves
	ret
endfn has_handler

fn handler
	label
	cmp $1, %rdx
	je 1b
	pop %rbx
	leaves
	ret
endfn handler

fn conditional_tail
	test %edi, %edi
	jne callee
	ret
endfn conditional_tail

fn entered_inside
	xor %eax, %eax
1:	inc %eax
	ret
endfn entered_inside

fn enters_inside
	test %edi, %edi
	tail 1b
	jmp 1b
endfn enters_inside

fn falls_into_next
	xor %eax, %eax
endfn falls_into_next

fn tail_shared
	leaves
	ret
endfn tail_shared

fn jumps_with_frame
	push %rdi
	jmp callee
endfn jumps_with_frame

fn returns_to_pushed
	push %rdi
	ret
endfn returns_to_pushed

fn calls_inside
	call 1f
	ret
1:	xor %eax, %eax
	ret
endfn calls_inside

fn returns_far
	lretq
endfn returns_far

fn does_not_decode
	test %edi, %edi
	je 1f
	.byte 0x06
1:	ret
endfn does_not_decode

	.p2align 4
exits_text_end:

	.data
pointer:
	.quad callee

	.section .note.GNU-stack,"",@progbits
