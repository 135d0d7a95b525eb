/* SPDX-License-Identifier: MIT */
/*
 * Static markers: locations in a program that cost one NOP until they are turned on.
 *
 *	#include <kymo/marker.h>
 *	MARK(request_begin, "fd=%d path=%s", fd, path);
 *	MARK(tick, MARK_NOARGS);
 *
 * Nothing has to be linked to it: `kymo record -m 'request_*' --pid N` records a program that only includes this
 * header. Programs that connect probes of their own include <kymo/marker_probe.h> and link libkymo-marker.
 *
 *	name	an identifier; need not be unique: a name turns on every marker that is called so
 *	format	a literal as for printf; the compiler checks it against the arguments. It gives the fields their names:
 *		"fd=%d path=%s" has the fields fd and path, "%d %s" has arg1 and arg2
 *	...	at most 8: integers, floating point (not long double), pointers. Each is evaluated once, and only while
 *		the marker is on
 *
 * A `char *` is a string: its first 255 bytes are copied up to the NUL. To record the pointer itself, cast it to void
 * pointer and write %p. "%.*s" and "%n" cannot be recorded.
 *
 * A marker works in functions that are inlined, unrolled or cloned, in headers and templates, and at any optimization;
 * also in threads, signal handlers and constructors. While it is on it may take 2.5 KiB of stack.
 * docs/internals/markers.md and the comments below describe what it writes into the object file. Every site is an SDT
 * probe, too (provider KYMO_MARKER_PROVIDER).
 *
 *	-DKYMO_NO_MARKERS	compiles to nothing; formats are still checked
 *	-DKYMO_MARKER_PORTABLE	tests a byte instead of patching an instruction: for text that cannot be changed, and
 *				the default on architectures without a port of their own
 *	-DKYMO_MARKER_PROVIDER=x	instead of `kymo`; an identifier
 *	-DKYMO_NO_MARK		does not define MARK and MARK_NOARGS: write KYMO_MARK and KYMO_MARK_NOARGS
 *
 * Origin: Linux Kernel Markers 0.5 (2006); the NOP is that of the kernel's jump labels
 * (Documentation/staging/static-keys.rst), the second note that of SystemTap's <sys/sdt.h>.
 */
#ifndef KYMO_MARKER_H
#define KYMO_MARKER_H

#include <stddef.h>
#include <stdint.h>

#ifndef KYMO_NO_MARK
#define MARK KYMO_MARK
#define MARK_NOARGS KYMO_MARK_NOARGS
#endif

/* The format of a marker without arguments. */
#define KYMO_MARK_NOARGS " "

#define KYMO_MARK(name, ...) \
	KYMO_MARKER_PICK_(__VA_ARGS__, takes_at_most_8_arguments, takes_at_most_8_arguments, \
			  takes_at_most_8_arguments, takes_at_most_8_arguments, takes_at_most_8_arguments, \
			  takes_at_most_8_arguments, takes_at_most_8_arguments, takes_at_most_8_arguments, 8, 7, 6, 5, \
			  4, 3, 2, 1, 0, 0) \
	(#name, struct name##_is_a_kymo_marker, __VA_ARGS__)

#ifndef KYMO_MARKER_PROVIDER
#define KYMO_MARKER_PROVIDER kymo
#endif
#define KYMO_MARKER_TEXT_(x) #x
#define KYMO_MARKER_TEXT(x) KYMO_MARKER_TEXT_(x)

#ifdef __cplusplus
#define KYMO_MARKER_ASSERT_(x, why) static_assert(x, why)
#else
#define KYMO_MARKER_ASSERT_(x, why) _Static_assert(x, why)
#endif

/* KYMO_MARKER_<number of arguments>(name, a type that proves that the name is one, format, arguments) */
#define KYMO_MARKER_PICK_(f, a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r, n, ...) KYMO_MARKER_##n

/* The same for 9 to 16. */
#define KYMO_MARKER_takes_at_most_8_arguments(...) \
	__extension__({ KYMO_MARKER_ASSERT_(0, "MARK() takes at most 8 arguments after its format"); })

#define KYMO_MARKER_0(name, proof, f) KYMO_MARKER_(name, proof, f, 0, 0u, , f)
#define KYMO_MARKER_1(name, proof, f, a) \
	KYMO_MARKER_(name, proof, f, 1, KYMO_MARKER_CODE_(0, a), KYMO_MARKER_KEEP_(0, a), f, a)
#define KYMO_MARKER_2(name, proof, f, a, b) \
	KYMO_MARKER_(name, proof, f, 2, KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b), f, a, b)
#define KYMO_MARKER_3(name, proof, f, a, b, c) \
	KYMO_MARKER_(name, proof, f, 3, KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b) | KYMO_MARKER_CODE_(2, c), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b) KYMO_MARKER_KEEP_(2, c), f, a, b, c)
#define KYMO_MARKER_4(name, proof, f, a, b, c, d) \
	KYMO_MARKER_(name, proof, f, 4, \
		     KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b) | KYMO_MARKER_CODE_(2, c) | \
			     KYMO_MARKER_CODE_(3, d), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b) KYMO_MARKER_KEEP_(2, c) KYMO_MARKER_KEEP_(3, d), \
		     f, a, b, c, d)
#define KYMO_MARKER_5(name, proof, f, a, b, c, d, e) \
	KYMO_MARKER_(name, proof, f, 5, \
		     KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b) | KYMO_MARKER_CODE_(2, c) | \
			     KYMO_MARKER_CODE_(3, d) | KYMO_MARKER_CODE_(4, e), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b) KYMO_MARKER_KEEP_(2, c) KYMO_MARKER_KEEP_(3, d) \
			     KYMO_MARKER_KEEP_(4, e), \
		     f, a, b, c, d, e)
#define KYMO_MARKER_6(name, proof, f, a, b, c, d, e, g) \
	KYMO_MARKER_(name, proof, f, 6, \
		     KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b) | KYMO_MARKER_CODE_(2, c) | \
			     KYMO_MARKER_CODE_(3, d) | KYMO_MARKER_CODE_(4, e) | KYMO_MARKER_CODE_(5, g), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b) KYMO_MARKER_KEEP_(2, c) KYMO_MARKER_KEEP_(3, d) \
			     KYMO_MARKER_KEEP_(4, e) KYMO_MARKER_KEEP_(5, g), \
		     f, a, b, c, d, e, g)
#define KYMO_MARKER_7(name, proof, f, a, b, c, d, e, g, h) \
	KYMO_MARKER_(name, proof, f, 7, \
		     KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b) | KYMO_MARKER_CODE_(2, c) | \
			     KYMO_MARKER_CODE_(3, d) | KYMO_MARKER_CODE_(4, e) | KYMO_MARKER_CODE_(5, g) | \
			     KYMO_MARKER_CODE_(6, h), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b) KYMO_MARKER_KEEP_(2, c) KYMO_MARKER_KEEP_(3, d) \
			     KYMO_MARKER_KEEP_(4, e) KYMO_MARKER_KEEP_(5, g) KYMO_MARKER_KEEP_(6, h), \
		     f, a, b, c, d, e, g, h)
#define KYMO_MARKER_8(name, proof, f, a, b, c, d, e, g, h, i) \
	KYMO_MARKER_(name, proof, f, 8, \
		     KYMO_MARKER_CODE_(0, a) | KYMO_MARKER_CODE_(1, b) | KYMO_MARKER_CODE_(2, c) | \
			     KYMO_MARKER_CODE_(3, d) | KYMO_MARKER_CODE_(4, e) | KYMO_MARKER_CODE_(5, g) | \
			     KYMO_MARKER_CODE_(6, h) | KYMO_MARKER_CODE_(7, i), \
		     KYMO_MARKER_KEEP_(0, a) KYMO_MARKER_KEEP_(1, b) KYMO_MARKER_KEEP_(2, c) KYMO_MARKER_KEEP_(3, d) \
			     KYMO_MARKER_KEEP_(4, e) KYMO_MARKER_KEEP_(5, g) KYMO_MARKER_KEEP_(6, h) \
				     KYMO_MARKER_KEEP_(7, i), \
		     f, a, b, c, d, e, g, h, i)

/* ---- what an argument is --------------------------------------------------------------------- */

enum kymo_marker_code {
	KYMO_MARKER_END,
	KYMO_MARKER_S32,
	KYMO_MARKER_U32,
	KYMO_MARKER_S64,
	KYMO_MARKER_U64,
	KYMO_MARKER_POINTER64,
	KYMO_MARKER_F64,
	KYMO_MARKER_STRING,
	KYMO_MARKER_POINTER32,
};

#define KYMO_MARKER_MAX_ARGUMENTS 8
#define KYMO_MARKER_STRING_MAX 256 /* with its NUL */

#ifdef __LP64__
#define KYMO_MARKER_SLONG_ 3u
#define KYMO_MARKER_ULONG_ 4u
#define KYMO_MARKER_PTR_ 5u
#else
#define KYMO_MARKER_SLONG_ 1u
#define KYMO_MARKER_ULONG_ 2u
#define KYMO_MARKER_PTR_ 8u
#endif

/* Always inlined, never a function of its own. Not static, as markers may be in inline functions that are not static.
 * */
#define KYMO_MARKER_INLINE_ extern __inline__ __attribute__((gnu_inline, always_inline, unused, no_instrument_function))

#ifdef __cplusplus
extern "C++" {
template <unsigned int code> struct kymo_marker_coded {
	char bytes[code];
};
kymo_marker_coded<1> kymo_marker_code_of(int);
kymo_marker_coded<2> kymo_marker_code_of(unsigned int);
kymo_marker_coded<KYMO_MARKER_SLONG_> kymo_marker_code_of(long);
kymo_marker_coded<KYMO_MARKER_ULONG_> kymo_marker_code_of(unsigned long);
kymo_marker_coded<3> kymo_marker_code_of(long long);
kymo_marker_coded<4> kymo_marker_code_of(unsigned long long);
kymo_marker_coded<6> kymo_marker_code_of(double);
kymo_marker_coded<7> kymo_marker_code_of(const char *);
kymo_marker_coded<KYMO_MARKER_PTR_> kymo_marker_code_of(const volatile void *);
kymo_marker_coded<KYMO_MARKER_PTR_> kymo_marker_code_of(decltype(nullptr));
#define KYMO_MARKER_CODE(x) ((unsigned int)sizeof(kymo_marker_code_of(x).bytes))

KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(int x)
{
	return (uint64_t)x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(unsigned int x)
{
	return x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(long x)
{
	return (uint64_t)x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(unsigned long x)
{
	return x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(long long x)
{
	return (uint64_t)x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(unsigned long long x)
{
	return x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(double x)
{
	uint64_t to;
	__builtin_memcpy(&to, &x, sizeof(to));
	return to;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_bits(const volatile void *x)
{
	return (uint64_t)(uintptr_t)x;
}
#define KYMO_MARKER_BITS(x) kymo_marker_bits(x)
}
#else
/* The conditional converts each operand to a value: promoted, arrays and functions as pointers, not a bit-field. */
#define KYMO_MARKER_CODE(x) \
	_Generic(1 ? (x) : (x), int : 1u, unsigned int : 2u, long \
		 : KYMO_MARKER_SLONG_, unsigned long \
		 : KYMO_MARKER_ULONG_, long long : 3u, unsigned long long : 4u, float : 6u, double : 6u, char * : 7u, \
		   const char * : 7u, default \
		 : KYMO_MARKER_PTR_)

KYMO_MARKER_INLINE_ uint64_t kymo_marker_signed(long long x)
{
	return (uint64_t)x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_unsigned(unsigned long long x)
{
	return x;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_double(double x)
{
	uint64_t to;
	__builtin_memcpy(&to, &x, sizeof(to));
	return to;
}
KYMO_MARKER_INLINE_ uint64_t kymo_marker_pointer(const volatile void *x)
{
	return (uint64_t)(uintptr_t)x;
}
#define KYMO_MARKER_BITS(x) \
	(_Generic(1 ? (x) : (x), int \
		  : kymo_marker_signed, unsigned int \
		  : kymo_marker_unsigned, long \
		  : kymo_marker_signed, unsigned long \
		  : kymo_marker_unsigned, long long \
		  : kymo_marker_signed, unsigned long long \
		  : kymo_marker_unsigned, float \
		  : kymo_marker_double, double \
		  : kymo_marker_double, default \
		  : kymo_marker_pointer)(x))
#endif

#define KYMO_MARKER_CODE_(i, x) (KYMO_MARKER_CODE(x) << (4 * (i)))

/* Never called: the compiler checks the format. */
__attribute__((format(printf, 1, 2))) KYMO_MARKER_INLINE_ void
kymo_marker_check(const char *format __attribute__((unused)), ...);
KYMO_MARKER_INLINE_ void kymo_marker_check(const char *format __attribute__((unused)), ...)
{
}

/* ---- what is shared with libkymo-marker and kymo --------------------------------------------- */

/* Which sides have turned a site on; each copy has a gate of its own. The portable form tests all four bytes. */
struct kymo_marker_gate {
	uint8_t inside;   /* libkymo-marker */
	uint8_t busy;     /* libkymo-marker is changing the text now */
	uint16_t outside; /* kymo's recordings: a bit each */
};

/* What a location calls; each copy of the cold block has its own slots. Only libkymo-marker writes them. */
struct kymo_marker_slots {
	void (*call)(void);                    /* probes; or NULL */
	const struct kymo_marker_rings *rings; /* where a recording in place goes; or NULL */
	uint64_t event_id;                     /* of that recording */
	void *owner;                           /* the library's */
};

/* Where a recording in place goes (docs/internals/markers.md). Compiled code reads it: the layout never changes, and a
 * new layout gets a new note. */
struct kymo_marker_rings {
	uint64_t first;      /* ring of CPU 0; they lie 1,024 bytes apart */
	uint64_t n_cpus;     /* 0: threads have no restartable sequences, and all records are made by `slow` */
	int64_t rseq_offset; /* of struct rseq from the thread pointer */
	int64_t tid_offset;  /* of the thread id, s32 */
	void (*slow)(void);  /* for what the sequence cannot do: see marker_x86_64.h */
};

#define KYMO_MARKER_NOTE_SITE 1
#define KYMO_MARKER_NOTE_LOCATION 2

/* In `.note.kymo`, owner "kymo". Offsets are relative to their own field; 0 is none. */
struct kymo_marker_note {
	int32_t code;   /* of a site: the NOP; of a location: the NOP after the arguments */
	int32_t target; /* of a site: the cold block; of a location: struct kymo_marker_slots */
	int32_t gate;   /* of a site: struct kymo_marker_gate; of a location: text that says where each argument is,
			   "8@%rcx 8@%rsi" */
	uint32_t types; /* enum kymo_marker_code of argument i in bits 4i to 4i + 3 */
	int32_t name, format, file;
	uint32_t line;
	int32_t provider;
};

/* Present in programs that link libkymo-marker: each module with markers calls them when it is loaded and unloaded. */
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak, visibility("default"))) void kymo_marker_module_comes(const void *inside);
__attribute__((weak, visibility("default"))) void kymo_marker_module_goes(const void *inside);
#ifdef __cplusplus
}
#endif

/* Prove that the name is an identifier: anything else makes an incomplete or an invalid type. */
#define KYMO_MARKER_PROVE_(name, proof) (void)sizeof(proof * [sizeof(name) > 1 ? 1 : -1]);

/*
 * KYMO_MARKER_(name, proof, format, number of arguments, their types, KYMO_MARKER_KEEP_() of each, format, arguments)
 * is the marker; KYMO_MARKER_KEEP_(i, x) is the left side of a comma operator that evaluates argument i. The right side
 * is part of the same expression, so temporary objects still exist there.
 */
#if defined(KYMO_NO_MARKERS)
#define KYMO_MARKER_KEEP_(i, x) (void)KYMO_MARKER_BITS(x),
#define KYMO_MARKER_(name, proof, format, n, types, keep, ...) \
	__extension__({ \
		KYMO_MARKER_PROVE_(name, proof) \
		if (0) { \
			kymo_marker_check(__VA_ARGS__); \
			(keep(void) 0); \
		} \
	})
#else
/*
 * Every object file has these functions and calls them. The linker keeps one copy a module, so their static variables
 * belong to the module.
 */
#if defined(__cplusplus)
extern "C" {
#endif
__attribute__((weak, visibility("hidden"), constructor, no_instrument_function)) void kymo_marker_come(void);
__attribute__((weak, visibility("hidden"), constructor, no_instrument_function)) void kymo_marker_come(void)
{
	static char has_told;

	if (!has_told && kymo_marker_module_comes)
		kymo_marker_module_comes((const void *)(uintptr_t)&kymo_marker_come);
	has_told = 1;
}
__attribute__((weak, visibility("hidden"), destructor, no_instrument_function)) void kymo_marker_go(void);
__attribute__((weak, visibility("hidden"), destructor, no_instrument_function)) void kymo_marker_go(void)
{
	static char has_told;

	if (!has_told && kymo_marker_module_goes)
		kymo_marker_module_goes((const void *)(uintptr_t)&kymo_marker_go);
	has_told = 1;
}
#if defined(__cplusplus)
}
#endif
#include <kymo/marker_note.h>
#if defined(__x86_64__) && defined(__LP64__)
#include <kymo/marker_x86_64.h>
#else
#include <kymo/marker_generic.h>
#endif
#endif

#endif
