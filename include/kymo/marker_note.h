/* SPDX-License-Identifier: MIT */
/*
 * What markers write into the object file beside their code, for all architectures. Included by marker.h alone.
 *
 * Written by assembly, because each copy that the compiler makes of a marker (inlined, unrolled, cloned) needs a note
 * of its own. The `?` puts a section into the group of the function, so that the linker drops them together. Local
 * labels 978 to 999 are reserved for markers; 990 is the marker's instruction.
 */

/* Statements that stay together, and that are not merged with equal ones. */
#if defined(__clang__)
#define KYMO_MARKER_APART_ __attribute__((nomerge))
#else
#define KYMO_MARKER_APART_
#endif

/* For compilers that count each line of assembly as an instruction: functions with markers would be too large to be
 * inlined. */
#if (defined(__clang__) && __clang_major__ >= 11) || (!defined(__clang__) && __GNUC__ >= 9)
#define KYMO_MARKER_ASM_ __asm__ __inline__
#else
#define KYMO_MARKER_ASM_ __asm__
#endif

#ifdef __LP64__
#define KYMO_MARKER_WORD_ ".8byte "
#else
#define KYMO_MARKER_WORD_ ".4byte "
#endif

/* The operands of all pieces of assembly. */
#define KYMO_MARKER_ABOUT_(f, t) [types] "i"(t), KYMO_MARKER_STRINGS_(f)[line] "i"(__LINE__)

/*
 * Operands that are addresses: `i`, or what compilers need instead for position-independent code. gcc has no such
 * constraint on i386 and with -mcmodel=large; and on i386 GNU ld misreads what clang writes as the address of the wrong
 * string. There, assembly without operands precedes the note and repeats the strings as the source has them. That works
 * except for C's rarer escapes.
 */
#if defined(__aarch64__)
#define KYMO_MARKER_STRINGS_(f) [format] "S"(f), [file] "S"(__FILE__),
#elif defined(__i386__) || (defined(__code_model_large__) && !defined(__clang__))
#define KYMO_MARKER_STRINGS_(f)
#define KYMO_MARKER_TEXTS_(f) \
	KYMO_MARKER_ASM_ volatile( \
		".pushsection .rodata.kymo,\"a?\"\n" \
		"978: .ascii " KYMO_MARKER_TEXT(f) "\n.byte 0\n" \
						   "979: .ascii " KYMO_MARKER_TEXT(__FILE__) "\n.byte 0\n" \
											     ".popsection\n");
#define KYMO_MARKER_FORMAT_AT_ "978b"
#define KYMO_MARKER_FILE_AT_ "979b"
#elif defined(__code_model_large__)
#define KYMO_MARKER_STRINGS_(f) [format] "s"(f), [file] "s"(__FILE__),
#else
#define KYMO_MARKER_STRINGS_(f) [format] "i"(f), [file] "i"(__FILE__),
#endif
#ifndef KYMO_MARKER_TEXTS_
#define KYMO_MARKER_TEXTS_(f)
#define KYMO_MARKER_FORMAT_AT_ "%c[format]"
#define KYMO_MARKER_FILE_AT_ "%c[file]"
#endif

/* struct kymo_marker_note; "991" is where the owner begins, `more` are strings that the note needs. */
#define KYMO_MARKER_NOTE_(type, code, target, third, name, more) \
	".pushsection .note.kymo,\"a?\",\"note\"\n" \
	".balign 4\n" \
	".4byte 992f - 991f, 994f - 993f, " type "\n" \
	"991: .asciz \"kymo\"\n" \
	"992: .balign 4\n" \
	"993: .4byte " code ", " target ", " third ", %c[types], 995f - ., " KYMO_MARKER_FORMAT_AT_ \
	" - ., " KYMO_MARKER_FILE_AT_ " - ., %c[line], 996f - .\n" \
	"995: .asciz \"" name "\"\n" \
	"996: .asciz \"" KYMO_MARKER_TEXT(KYMO_MARKER_PROVIDER) "\"\n" more ".balign 4\n" \
								"994:\n" \
								".popsection\n"

/* For debuggers and the kernel's tools: an SDT probe without arguments at 990. */
#define KYMO_MARKER_SDT_(name) \
	".pushsection .note.stapsdt,\"?\",\"note\"\n" \
	".balign 4\n" \
	".4byte 992f - 991f, 994f - 993f, 3\n" \
	"991: .asciz \"stapsdt\"\n" \
	"992: .balign 4\n" \
	"993: " KYMO_MARKER_WORD_ "990b, _.stapsdt.base, 0\n" \
	".asciz \"" KYMO_MARKER_TEXT( \
		KYMO_MARKER_PROVIDER) "\"\n" \
				      ".asciz \"" name "\"\n" \
				      ".asciz \"\"\n" \
				      "994: .balign 4\n" \
				      ".popsection\n" \
				      ".ifndef _.stapsdt.base\n" \
				      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
				      ".weak _.stapsdt.base\n" \
				      ".hidden _.stapsdt.base\n" \
				      "_.stapsdt.base: .space 1\n" \
				      ".size _.stapsdt.base, 1\n" \
				      ".popsection\n" \
				      ".endif\n"

/* struct kymo_marker_gate */
#define KYMO_MARKER_GATE_ \
	".pushsection .data.kymo,\"aw?\"\n" \
	".balign 4\n" \
	"989: .4byte 0\n" \
	".popsection\n"

/*
 * KYMO_MARKER_WHEN_ON_(name, format, types, cold block): a site that jumps. KYMO_MARKER_SITE_(label) is its instruction
 * at 990; KYMO_MARKER_CODE_AT_ says whether kymo changes it.
 *
 * clang before 17 refuses some functions with several asm goto. It does so if the label of one lies among variables
 * that have destructors, or in another statement expression. So there the jump is in a function of its own. It gets
 * what it cannot know from the statement before it, through a macro of the assembler. That function must always be
 * inlined: -fsanitize=function would keep a copy of it. The statement must not be merged with that of another copy, or
 * there would be one for two.
 */
#ifdef __clang__
#define KYMO_MARKER_WHEN_ON_(name, f, t, ...) \
	KYMO_MARKER_APART_ \
	{ \
		KYMO_MARKER_TEXTS_(f) \
		KYMO_MARKER_ASM_ volatile(".macro kymo_marker_notes cold\n" KYMO_MARKER_NOTE_( \
						  "1", KYMO_MARKER_CODE_AT_, "\\cold - .", "989b - .", name, ) \
						  KYMO_MARKER_SDT_(name) ".endm\n" \
					  : \
					  : KYMO_MARKER_ABOUT_(f, t)); \
	} \
	if (__builtin_expect(kymo_marker_is_on(), 0)) { \
		__VA_ARGS__ \
	}
#define KYMO_MARKER_IS_ON_ \
	__attribute__((no_sanitize("function"))) KYMO_MARKER_INLINE_ int kymo_marker_is_on(void) \
	{ \
		__asm__ goto(KYMO_MARKER_SITE_("%l[on]") KYMO_MARKER_GATE_ \
			     "kymo_marker_notes %l[on]\n.purgem kymo_marker_notes\n" \
			     : \
			     : \
			     : "cc" \
			     : on); \
		return 0; \
on: \
		return 1; \
	}
#else
#define KYMO_MARKER_WHEN_ON_(name, f, t, ...) \
	{ \
		__label__ kymo_cold; \
		KYMO_MARKER_TEXTS_(f) \
		KYMO_MARKER_ASM_ goto(KYMO_MARKER_SITE_("%l[kymo_cold]") KYMO_MARKER_GATE_ KYMO_MARKER_NOTE_( \
					      "1", KYMO_MARKER_CODE_AT_, "%l[kymo_cold] - .", "989b - .", name, ) \
					      KYMO_MARKER_SDT_(name) \
				      : \
				      : KYMO_MARKER_ABOUT_(f, t) \
				      : "cc" \
				      : kymo_cold); \
		if (0) { \
kymo_cold: \
			__attribute__((unused, cold)); \
			__VA_ARGS__ \
		} \
	}
#define KYMO_MARKER_IS_ON_
#endif
