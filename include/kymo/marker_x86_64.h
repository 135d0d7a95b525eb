/* SPDX-License-Identifier: MIT */
/*
 * Markers on x86-64. Included by marker.h alone.
 *
 * A marker is two pieces of assembly. The *site* is in the hot path: a NOP of five bytes, or, in the portable form, a
 * test of its gate. The *location* is at the end of the cold block, after the evaluation of the arguments, which are in
 * registers then:
 *
 *	1. the probes of the process, through slots.call
 *	2. if one is a string: kymo_marker_pack makes a payload of all arguments, with its address in r10 and its size
 *	   in r11
 *	3. the second NOP, where kymo puts a pad; the note says which registers
 *	4. a record into the rings of the process, through slots.rings
 *
 * The compiler does not see a call, as it would have to save what a call may change, in the hot path, too. So all of
 * this preserves every register, and steps over the red zone.
 *
 * A restartable sequence makes the record, as in kymo's pads. It finds space in the ring of this CPU and writes
 * arguments, stamp, header and thread id. The store of the ring's new position comes last and makes the record count.
 * The kernel restarts the sequence if it was preempted, migrated or interrupted by a signal before that store
 * (rseq(2)), so a ring has one producer. The signature is glibc's.
 */

/*
 * The frame, below the red zone: 0 rax, 8 r10, 16 r11, 24 rdx, 32 the arguments, 8 bytes each. slots.call and
 * rings.slow are called with rdx the slots and the return address right below the frame; but rings.slow may get a
 * payload in r10 and r11, which then lies in between; without a payload r11 is 0. Both preserve all registers except
 * rax, rdx, r10, r11. Unwind information must say that the caller's stack pointer is KYMO_MARKER_FRAME above the return
 * address's end.
 */
#define KYMO_MARKER_FRAME 224
#define KYMO_MARKER_FRAME_ARGUMENTS 32

/* Argument i. With -masm=intel operands are printed without the %. */
#define KYMO_MARKER_ARG_(i) "{|%%}%q[a" #i "]"

#ifdef KYMO_MARKER_PORTABLE
#define KYMO_MARKER_SITE_(cold) \
	"{|.att_syntax}\n" \
	"990: cmpl $0, 989f(%%rip)\n" \
	"jne " cold "\n" \
	"{|.intel_syntax noprefix}\n"
#define KYMO_MARKER_CODE_AT_ "0"
#else
#define KYMO_MARKER_SITE_(cold) "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#define KYMO_MARKER_CODE_AT_ "990b - ."
#endif
KYMO_MARKER_IS_ON_

/* ---- strings --------------------------------------------------------------------------------- */

/*
 * Once a module: make a payload out of the arguments, whose types are in eax. It lies above the return address, in
 * KYMO_MARKER_PACK_FRAME bytes that lie below the frame. rax, rdx, r10 and r11 change. rdi: where the next byte goes,
 * r10: the next argument; both and rcx are pushed.
 */
#define KYMO_MARKER_PACK_FRAME 2048
#define KYMO_MARKER_PACK_ \
	".ifndef kymo_marker_pack\n" \
	".pushsection .text.kymo_marker_pack,\"axG\",@progbits,kymo_marker_pack,comdat\n" \
	".weak kymo_marker_pack\n" \
	".hidden kymo_marker_pack\n" \
	".type kymo_marker_pack, @function\n" \
	"kymo_marker_pack:\n" \
	"push %%rdi\n" \
	"push %%rcx\n" \
	"lea 24 + 2048 + 32(%%rsp), %%r10\n" \
	"lea 24(%%rsp), %%rdi\n" \
	"1: mov %%eax, %%ecx\n" \
	"and $15, %%ecx\n" \
	"mov (%%r10), %%r11\n" \
	"add $8, %%r10\n" \
	"cmp $7, %%ecx\n" \
	"je 3f\n" \
	"mov $0x106, %%edx\n" /* the types of four bytes */ \
	"bt %%ecx, %%edx\n" \
	"jc 2f\n" \
	"mov %%r11, (%%rdi)\n" \
	"add $8, %%rdi\n" \
	"jmp 6f\n" \
	"2: mov %%r11d, (%%rdi)\n" \
	"add $4, %%rdi\n" \
	"jmp 6f\n" \
	"3: test %%r11, %%r11\n" \
	"jne 4f\n" \
	"lea 9f(%%rip), %%r11\n" \
	"4: mov $255, %%ecx\n" \
	"5: movzbl (%%r11), %%edx\n" \
	"mov %%dl, (%%rdi)\n" \
	"inc %%rdi\n" \
	"test %%edx, %%edx\n" \
	"je 6f\n" \
	"inc %%r11\n" \
	"dec %%ecx\n" \
	"jne 5b\n" \
	"movb $0, (%%rdi)\n" \
	"inc %%rdi\n" \
	"6: shr $4, %%eax\n" \
	"jne 1b\n" \
	"lea 24(%%rsp), %%r10\n" \
	"mov %%rdi, %%r11\n" \
	"sub %%r10, %%r11\n" \
	"pop %%rcx\n" \
	"pop %%rdi\n" \
	"ret\n" \
	"9: .asciz \"(null)\"\n" \
	".size kymo_marker_pack, . - kymo_marker_pack\n" \
	".popsection\n" \
	".endif\n"

/* ---- a record in place ----------------------------------------------------------------------- */

/* Bytes that an argument of this type takes in a record, and those of the first i. */
#define KYMO_MARKER_SIZE_(types, i) (0x106u >> ((types) >> (4 * (i)) & 15) & 1 ? 4 : (types) >> (4 * (i)) & 15 ? 8 : 0)
#define KYMO_MARKER_UPTO1_(t) (12 + KYMO_MARKER_SIZE_(t, 0))
#define KYMO_MARKER_UPTO2_(t) (KYMO_MARKER_UPTO1_(t) + KYMO_MARKER_SIZE_(t, 1))
#define KYMO_MARKER_UPTO3_(t) (KYMO_MARKER_UPTO2_(t) + KYMO_MARKER_SIZE_(t, 2))
#define KYMO_MARKER_UPTO4_(t) (KYMO_MARKER_UPTO3_(t) + KYMO_MARKER_SIZE_(t, 3))
#define KYMO_MARKER_UPTO5_(t) (KYMO_MARKER_UPTO4_(t) + KYMO_MARKER_SIZE_(t, 4))
#define KYMO_MARKER_UPTO6_(t) (KYMO_MARKER_UPTO5_(t) + KYMO_MARKER_SIZE_(t, 5))
#define KYMO_MARKER_UPTO7_(t) (KYMO_MARKER_UPTO6_(t) + KYMO_MARKER_SIZE_(t, 6))
#define KYMO_MARKER_UPTO8_(t) (KYMO_MARKER_UPTO7_(t) + KYMO_MARKER_SIZE_(t, 7))

/* Whether one of the arguments is a string. */
#define KYMO_MARKER_IS_STRING_(t, i) (((t) >> (4 * (i)) & 15) == 7)
#define KYMO_MARKER_HAS_STRING_(t) \
	(KYMO_MARKER_IS_STRING_(t, 0) || KYMO_MARKER_IS_STRING_(t, 1) || KYMO_MARKER_IS_STRING_(t, 2) || \
	 KYMO_MARKER_IS_STRING_(t, 3) || KYMO_MARKER_IS_STRING_(t, 4) || KYMO_MARKER_IS_STRING_(t, 5) || \
	 KYMO_MARKER_IS_STRING_(t, 6) || KYMO_MARKER_IS_STRING_(t, 7))

/* Store argument i; the assembler drops it where there is none. */
#define KYMO_MARKER_PUT_0
#define KYMO_MARKER_PUT_1 KYMO_MARKER_PUT_AT_(0, 40)
#define KYMO_MARKER_PUT_2 KYMO_MARKER_PUT_1 KYMO_MARKER_PUT_AT_(1, 48)
#define KYMO_MARKER_PUT_3 KYMO_MARKER_PUT_2 KYMO_MARKER_PUT_AT_(2, 56)
#define KYMO_MARKER_PUT_4 KYMO_MARKER_PUT_3 KYMO_MARKER_PUT_AT_(3, 64)
#define KYMO_MARKER_PUT_5 KYMO_MARKER_PUT_4 KYMO_MARKER_PUT_AT_(4, 72)
#define KYMO_MARKER_PUT_6 KYMO_MARKER_PUT_5 KYMO_MARKER_PUT_AT_(5, 80)
#define KYMO_MARKER_PUT_7 KYMO_MARKER_PUT_6 KYMO_MARKER_PUT_AT_(6, 88)
#define KYMO_MARKER_PUT_8 KYMO_MARKER_PUT_7 KYMO_MARKER_PUT_AT_(7, 96)
#define KYMO_MARKER_PUT_AT_(i, from) \
	"mov " #from "(%%rsp), %%rdx\n" \
	".if (0x106 >> ((%c[types] >> (4 * " #i ")) & 15)) & 1\n" \
	"mov %%edx, %c[at" #i "](%%r10,%%r11)\n" \
	".else\n" \
	"mov %%rdx, %c[at" #i "](%%r10,%%r11)\n" \
	".endif\n"

/* slots.rings may change meanwhile, so the value in use is kept right below the frame: the arguments lie 8 bytes higher
 * then. */
#define KYMO_MARKER_RECORD_(n) \
	"push %%rax\n" \
	"cmpq $0, 8(%%rax)\n" /* no restartable sequences */ \
	"je 982f\n" \
	"980: mov 16(%%rax), %%r11\n" \
	"lea 988f(%%rip), %%r10\n" \
	"mov %%r10, %%fs:8(%%r11)\n"       /* struct rseq.rseq_cs */ \
	"984: mov %%fs:4(%%r11), %%r10d\n" /* struct rseq.cpu_id */ \
	"cmp 8(%%rax), %%r10\n" \
	"jae 981f\n" \
	"shl $10, %%r10d\n" \
	"add (%%rax), %%r10\n" \
	"mov 16(%%r10), %%rax\n" /* where the sub-buffer ends, before the position: see kymo's emit.c */ \
	"mov 8(%%r10), %%r11\n" \
	"sub $%c[size], %%rax\n" \
	"cmp %%r11, %%rax\n" \
	"jl 981f\n" KYMO_MARKER_PUT_##n \
		"rdtsc\n" \
		"shl $32, %%rdx\n" \
		"or %%rdx, %%rax\n" \
		"mov %%rax, 24(%%r10)\n" \
		"shl $20, %%rax\n" \
		"or 987f + 16(%%rip), %%rax\n" \
		"mov %%rax, (%%r10,%%r11)\n" \
		"mov (%%rsp), %%rax\n" \
		"mov 24(%%rax), %%rdx\n" \
		"mov %%fs:(%%rdx), %%edx\n" \
		"mov %%edx, 8(%%r10,%%r11)\n" \
		"add $%c[size], %%r11\n" \
		"mov %%r11, 8(%%r10)\n" /* it counts */ \
		"985: mov 16(%%rax), %%r11\n" \
		"movq $0, %%fs:8(%%r11)\n" \
		"pop %%rax\n" \
		"jmp 983f\n" \
		".byte 0x0f, 0xb9, 0x3d\n" /* ud1: the signature disassembles as its operand */ \
		".4byte 0x53053053\n" \
		"986: mov (%%rsp), %%rax\n" \
		"jmp 980b\n" \
		"981: mov (%%rsp), %%rax\n" /* no room, or not registered */ \
		"mov 16(%%rax), %%r11\n" \
		"movq $0, %%fs:8(%%r11)\n" \
		".pushsection __rseq_cs,\"aw?\"\n" \
		".balign 32\n" \
		"988: .4byte 0, 0\n" \
		".8byte 984b, 985b - 984b, 986b\n" \
		".popsection\n" \
		"982: pop %%rax\n"

/* ---- the marker ------------------------------------------------------------------------------ */

#define KYMO_MARKER_SAVE_0
#define KYMO_MARKER_SAVE_1 "mov " KYMO_MARKER_ARG_(0) ", 32(%%rsp)\n"
#define KYMO_MARKER_SAVE_2 KYMO_MARKER_SAVE_1 "mov " KYMO_MARKER_ARG_(1) ", 40(%%rsp)\n"
#define KYMO_MARKER_SAVE_3 KYMO_MARKER_SAVE_2 "mov " KYMO_MARKER_ARG_(2) ", 48(%%rsp)\n"
#define KYMO_MARKER_SAVE_4 KYMO_MARKER_SAVE_3 "mov " KYMO_MARKER_ARG_(3) ", 56(%%rsp)\n"
#define KYMO_MARKER_SAVE_5 KYMO_MARKER_SAVE_4 "mov " KYMO_MARKER_ARG_(4) ", 64(%%rsp)\n"
#define KYMO_MARKER_SAVE_6 KYMO_MARKER_SAVE_5 "mov " KYMO_MARKER_ARG_(5) ", 72(%%rsp)\n"
#define KYMO_MARKER_SAVE_7 KYMO_MARKER_SAVE_6 "mov " KYMO_MARKER_ARG_(6) ", 80(%%rsp)\n"
#define KYMO_MARKER_SAVE_8 KYMO_MARKER_SAVE_7 "mov " KYMO_MARKER_ARG_(7) ", 88(%%rsp)\n"

#define KYMO_MARKER_OPERANDS_0
#define KYMO_MARKER_OPERANDS_1 "8@" KYMO_MARKER_ARG_(0)
#define KYMO_MARKER_OPERANDS_2 KYMO_MARKER_OPERANDS_1 " 8@" KYMO_MARKER_ARG_(1)
#define KYMO_MARKER_OPERANDS_3 KYMO_MARKER_OPERANDS_2 " 8@" KYMO_MARKER_ARG_(2)
#define KYMO_MARKER_OPERANDS_4 KYMO_MARKER_OPERANDS_3 " 8@" KYMO_MARKER_ARG_(3)
#define KYMO_MARKER_OPERANDS_5 KYMO_MARKER_OPERANDS_4 " 8@" KYMO_MARKER_ARG_(4)
#define KYMO_MARKER_OPERANDS_6 KYMO_MARKER_OPERANDS_5 " 8@" KYMO_MARKER_ARG_(5)
#define KYMO_MARKER_OPERANDS_7 KYMO_MARKER_OPERANDS_6 " 8@" KYMO_MARKER_ARG_(6)
#define KYMO_MARKER_OPERANDS_8 KYMO_MARKER_OPERANDS_7 " 8@" KYMO_MARKER_ARG_(7)

#define KYMO_MARKER_LOCATION_(name, n) \
	"{|.att_syntax}\n" \
	"lea -224(%%rsp), %%rsp\n" \
	"mov %%rax, (%%rsp)\n" \
	"mov %%r10, 8(%%rsp)\n" \
	"mov %%r11, 16(%%rsp)\n" \
	"mov %%rdx, 24(%%rsp)\n" KYMO_MARKER_SAVE_##n \
		"mov 987f(%%rip), %%rax\n" \
		"test %%rax, %%rax\n" \
		"je 1f\n" \
		"lea 987f(%%rip), %%rdx\n" \
		"call *%%rax\n" \
		"mov 8(%%rsp), %%r10\n" \
		"mov 16(%%rsp), %%r11\n" \
		"mov 24(%%rsp), %%rdx\n" \
		"1:\n" \
		".if %c[strings]\n" \
		"lea -2048(%%rsp), %%rsp\n" \
		"mov $%c[types], %%eax\n" \
		"call kymo_marker_pack\n" \
		".else\n" \
		"mov (%%rsp), %%rax\n" \
		".endif\n" \
		".balign 8\n" /* one page */ \
		"990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n" \
		"mov 987f + 8(%%rip), %%rax\n" \
		"test %%rax, %%rax\n" \
		"je 983f\n" \
		".if %c[strings] == 0\n" KYMO_MARKER_RECORD_(n) "xor %%r11d, %%r11d\n" \
								".endif\n" \
								"lea 987f(%%rip), %%rdx\n" \
								"call *32(%%rax)\n" \
								"983:\n" \
								".if %c[strings]\n" \
								"lea 2048(%%rsp), %%rsp\n" \
								".endif\n" \
								"mov (%%rsp), %%rax\n" \
								"mov 8(%%rsp), %%r10\n" \
								"mov 16(%%rsp), %%r11\n" \
								"mov 24(%%rsp), %%rdx\n" \
								"lea 224(%%rsp), %%rsp\n" \
								".pushsection .data.kymo,\"aw?\"\n" \
								".balign 8\n" \
								"987: .8byte 0, 0, 0, 0\n" \
								".popsection\n" \
								".if %c[strings]\n" KYMO_MARKER_PACK_ \
								".endif\n" KYMO_MARKER_NOTE_( \
									"2", "990b - .", "987b - .", "998f - .", name, \
									"998: .asciz \"" KYMO_MARKER_OPERANDS_##n \
									"\"\n") "{|.intel_syntax noprefix}\n"

#define KYMO_MARKER_KEEP_(i, x) (void)(kymo_value##i = KYMO_MARKER_BITS(x)),

#define KYMO_MARKER_VALUES_0
#define KYMO_MARKER_VALUES_1 uint64_t kymo_value0;
#define KYMO_MARKER_VALUES_2 uint64_t kymo_value0, kymo_value1;
#define KYMO_MARKER_VALUES_3 uint64_t kymo_value0, kymo_value1, kymo_value2;
#define KYMO_MARKER_VALUES_4 uint64_t kymo_value0, kymo_value1, kymo_value2, kymo_value3;
#define KYMO_MARKER_VALUES_5 uint64_t kymo_value0, kymo_value1, kymo_value2, kymo_value3, kymo_value4;
#define KYMO_MARKER_VALUES_6 uint64_t kymo_value0, kymo_value1, kymo_value2, kymo_value3, kymo_value4, kymo_value5;
#define KYMO_MARKER_VALUES_7 \
	uint64_t kymo_value0, kymo_value1, kymo_value2, kymo_value3, kymo_value4, kymo_value5, kymo_value6;
#define KYMO_MARKER_VALUES_8 \
	uint64_t kymo_value0, kymo_value1, kymo_value2, kymo_value3, kymo_value4, kymo_value5, kymo_value6, kymo_value7;

/*
 * Argument i. The upper halves of arguments of four bytes are anything: compilers would rather extend such a value in
 * the hot path than in the cold block, and in loops count twice.
 */
#ifdef __cplusplus
extern "C++" {
template <bool is_word> struct kymo_marker_operand {
	typedef uint64_t type;
};
template <> struct kymo_marker_operand<true> {
	typedef uint32_t type;
};
}
#define KYMO_MARKER_OPERAND_(i) typename kymo_marker_operand<KYMO_MARKER_SIZE_(kymo_types, i) == 4>::type(kymo_value##i)
#else
#define KYMO_MARKER_OPERAND_(i) \
	__builtin_choose_expr(KYMO_MARKER_SIZE_(kymo_types, i) == 4, (uint32_t)kymo_value##i, kymo_value##i)
#endif

#define KYMO_MARKER_INPUTS_0
#define KYMO_MARKER_INPUTS_1 , [a0] "r"(KYMO_MARKER_OPERAND_(0)), [at0] "i"(12)
#define KYMO_MARKER_INPUTS_2 \
	KYMO_MARKER_INPUTS_1, [a1] "r"(KYMO_MARKER_OPERAND_(1)), [at1] "i"(KYMO_MARKER_UPTO1_(kymo_types))
#define KYMO_MARKER_INPUTS_3 \
	KYMO_MARKER_INPUTS_2, [a2] "r"(KYMO_MARKER_OPERAND_(2)), [at2] "i"(KYMO_MARKER_UPTO2_(kymo_types))
#define KYMO_MARKER_INPUTS_4 \
	KYMO_MARKER_INPUTS_3, [a3] "r"(KYMO_MARKER_OPERAND_(3)), [at3] "i"(KYMO_MARKER_UPTO3_(kymo_types))
#define KYMO_MARKER_INPUTS_5 \
	KYMO_MARKER_INPUTS_4, [a4] "r"(KYMO_MARKER_OPERAND_(4)), [at4] "i"(KYMO_MARKER_UPTO4_(kymo_types))
#define KYMO_MARKER_INPUTS_6 \
	KYMO_MARKER_INPUTS_5, [a5] "r"(KYMO_MARKER_OPERAND_(5)), [at5] "i"(KYMO_MARKER_UPTO5_(kymo_types))
#define KYMO_MARKER_INPUTS_7 \
	KYMO_MARKER_INPUTS_6, [a6] "r"(KYMO_MARKER_OPERAND_(6)), [at6] "i"(KYMO_MARKER_UPTO6_(kymo_types))
#define KYMO_MARKER_INPUTS_8 \
	KYMO_MARKER_INPUTS_7, [a7] "r"(KYMO_MARKER_OPERAND_(7)), [at7] "i"(KYMO_MARKER_UPTO7_(kymo_types))

#define KYMO_MARKER_(name, proof, f, n, t, keep, ...) __extension__({ \
		enum { kymo_types = (int)(t) }; \
		KYMO_MARKER_PROVE_(name, proof) \
		KYMO_MARKER_WHEN_ON_(name, f, t, \
			if (0) \
				kymo_marker_check(__VA_ARGS__); \
			KYMO_MARKER_VALUES_##n \
			(keep __extension__({ \
				KYMO_MARKER_APART_ { \
					KYMO_MARKER_TEXTS_(f) \
					KYMO_MARKER_ASM_ volatile( \
						KYMO_MARKER_LOCATION_(name, n) \
						: : KYMO_MARKER_ABOUT_(f, t), [strings] "i"(KYMO_MARKER_HAS_STRING_(t)), \
						[size] "i"(KYMO_MARKER_UPTO8_(t)) KYMO_MARKER_INPUTS_##n \
						: "memory", "cc"); \
				} \
	}));) \
	})
