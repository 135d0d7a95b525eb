/* SPDX-License-Identifier: MIT */
/*
 * Markers on i386, aarch64, and all other machines for which gcc or clang make ELF files. Included by marker.h alone.
 *
 * On i386 the site is the same NOP as on x86-64. Elsewhere, and with KYMO_MARKER_PORTABLE, it reads all four bytes of
 * its gate at once and tests them.
 *
 * The cold block is C. If libkymo-marker has set slots.call, the block calls it as
 *
 *	void call(struct kymo_marker_slots *slots, const char *format, ...)
 *
 * with the arguments; else it does not evaluate them. The note of the location names no instruction, since kymo cannot
 * record there from outside. The compiler sees that call. So it may keep a value that lives across a marker in another
 * register, or on the stack.
 *
 * Assembly makes the gate and the slots, one of each a copy; ADDRESS and READ say how code reaches them. Machines
 * without these two use static objects, one for all copies of a marker. That works as well, with two limits. C
 * compilers warn about them in an `inline` function that is neither static nor gnu_inline. In C++ such a function
 * cannot be part of a shared object.
 */

/* KYMO_MARKER_ADDRESS_(label, register): load the address of data; KYMO_MARKER_READ_(label, register): load four bytes
 * of data at once. */
#if defined(__i386__) && (defined(__PIC__) || defined(__PIE__))
#define KYMO_MARKER_HERE_(to) "call 1f\n1: pop " to "\n"
#define KYMO_MARKER_ADDRESS_(label, to) KYMO_MARKER_HERE_(to) "lea " label " - 1b(" to "), " to "\n"
#define KYMO_MARKER_READ_(label, to) KYMO_MARKER_HERE_(to) "movl " label " - 1b(" to "), " to "\n"
#elif defined(__i386__)
#define KYMO_MARKER_ADDRESS_(label, to) "movl $" label ", " to "\n"
#define KYMO_MARKER_READ_(label, to) "movl " label ", " to "\n"
#elif defined(__x86_64__)
#define KYMO_MARKER_ADDRESS_(label, to) "leal " label "(%%rip), " to "\n"
#define KYMO_MARKER_READ_(label, to) "movl " label "(%%rip), " to "\n"
#elif defined(__aarch64__)
#define KYMO_MARKER_ADDRESS_(label, to) "adrp " to ", " label "\nadd " to ", " to ", :lo12:" label "\n"
#define KYMO_MARKER_READ_(label, to) "adrp " to ", " label "\nldr %w[to], [" to ", :lo12:" label "]\n"
#endif

/* The register. With -masm=intel it is printed without the %. */
#if defined(__i386__) || defined(__x86_64__)
#define KYMO_MARKER_TO_ "{|%%}%k[to]"
#define KYMO_MARKER_ATT_ "{|.att_syntax}\n"
#define KYMO_MARKER_SYNTAX_ "{|.intel_syntax noprefix}\n"
#else
#define KYMO_MARKER_TO_ "%[to]"
#define KYMO_MARKER_ATT_
#define KYMO_MARKER_SYNTAX_
#endif

/* ---- the site -------------------------------------------------------------------------------- */

#if defined(__i386__) && !defined(KYMO_MARKER_PORTABLE)
#define KYMO_MARKER_SITE_(cold) "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#define KYMO_MARKER_CODE_AT_ "990b - ."
KYMO_MARKER_IS_ON_
#else
#undef KYMO_MARKER_WHEN_ON_
#ifdef KYMO_MARKER_READ_
#define KYMO_MARKER_WHEN_ON_(name, f, t, ...) \
	{ \
		uintptr_t kymo_on; \
		KYMO_MARKER_APART_ \
		{ \
			KYMO_MARKER_TEXTS_(f) \
			KYMO_MARKER_ASM_ volatile( \
				KYMO_MARKER_ATT_ "990: " KYMO_MARKER_READ_("989f", KYMO_MARKER_TO_) \
					KYMO_MARKER_GATE_ KYMO_MARKER_NOTE_("1", "0", "0", "989b - .", name, ) \
						KYMO_MARKER_SDT_(name) KYMO_MARKER_SYNTAX_ \
				: [to] "=r"(kymo_on) \
				: KYMO_MARKER_ABOUT_(f, t)); \
		} \
		if (__builtin_expect((uint32_t)kymo_on != 0, 0)) { \
			__VA_ARGS__ \
		} \
	}
#else
typedef uint32_t __attribute__((may_alias)) kymo_marker_gate_word;
#define KYMO_MARKER_WHEN_ON_(name, f, t, ...) \
	{ \
		static struct kymo_marker_gate kymo_gate __attribute__((aligned(4))); \
		KYMO_MARKER_ASM_ volatile("990:\n" KYMO_MARKER_NOTE_("1", "0", "0", "%c[gate] - .", name, ) \
						  KYMO_MARKER_SDT_(name) \
					  : \
					  : KYMO_MARKER_ABOUT_(f, t), [gate] "i"(&kymo_gate)); \
		if (__builtin_expect(__atomic_load_n((kymo_marker_gate_word *)&kymo_gate, __ATOMIC_RELAXED) != 0, \
				     0)) { \
			__VA_ARGS__ \
		} \
	}
#endif
#endif

/* ---- the location ---------------------------------------------------------------------------- */

#ifdef KYMO_MARKER_ADDRESS_
#define KYMO_MARKER_LOCATION_(name, f, t) \
	struct kymo_marker_slots *kymo_slots; \
	KYMO_MARKER_APART_ \
	{ \
		KYMO_MARKER_TEXTS_(f) \
		KYMO_MARKER_ASM_ volatile(KYMO_MARKER_ATT_ KYMO_MARKER_ADDRESS_( \
						  "987f", KYMO_MARKER_TO_) ".pushsection .data.kymo,\"aw?\"\n" \
									   ".balign 8\n" \
									   "987: .space %c[size]\n" \
									   ".popsection\n" KYMO_MARKER_NOTE_( \
										   "2", "0", "987b - .", "0", name, ) \
										   KYMO_MARKER_SYNTAX_ \
					  : [to] "=r"(kymo_slots) \
					  : KYMO_MARKER_ABOUT_(f, t), [size] "i"(sizeof(struct kymo_marker_slots))); \
	}
#else
#define KYMO_MARKER_LOCATION_(name, f, t) \
	static struct kymo_marker_slots kymo_static_slots; \
	struct kymo_marker_slots *const kymo_slots = &kymo_static_slots; \
	KYMO_MARKER_ASM_ volatile(KYMO_MARKER_NOTE_("2", "0", "%c[slots] - .", "0", name, ) \
				  : \
				  : KYMO_MARKER_ABOUT_(f, t), [slots] "i"(&kymo_static_slots));
#endif

typedef void kymo_marker_variadic(struct kymo_marker_slots *slots, const char *format, ...);

/* Or NULL. Acquire: what the library has published with it is visible, too. */
KYMO_MARKER_INLINE_ kymo_marker_variadic *kymo_marker_callee(struct kymo_marker_slots *slots)
{
	return (kymo_marker_variadic *)__atomic_load_n(&slots->call, __ATOMIC_ACQUIRE);
}

/* Only the call evaluates an argument; this is for its type. */
#define KYMO_MARKER_KEEP_(i, x) (void)KYMO_MARKER_BITS(x),

#define KYMO_MARKER_(name, proof, f, n, t, keep, ...) \
	__extension__({ \
		KYMO_MARKER_PROVE_(name, proof) \
		KYMO_MARKER_WHEN_ON_( \
			name, f, t, \
			KYMO_MARKER_LOCATION_(name, f, t) kymo_marker_variadic *const kymo_call = \
				kymo_marker_callee(kymo_slots); \
			if (0) { \
				kymo_marker_check(__VA_ARGS__); \
				(keep(void) 0); \
			} if (kymo_call) kymo_call(kymo_slots, __VA_ARGS__);) \
	})
