/*
 * Functions to be traced from outside, and loops that call them.
 *
 * The functions are written in assembler so that their first instruction is known, because that decides what a kernel
 * uprobe costs: a 5-byte NOP, which the kernel may replace by a call; `push %rbp`, which it emulates after an int3;
 * `sub $0x18,%rsp`, which it runs out of line with a single step. All have room for 5 displaced bytes before anything
 * else can enter. With BENCH_PLAIN there is one function in C instead, for tracers that need the compiler's own
 * instrumentation.
 */
#include "harness.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define UNTRACED __attribute__((no_instrument_function, patchable_function_entry(0)))

#ifdef BENCH_PLAIN

long hit_c2(int a, long b);

__attribute__((noinline)) long hit_c2(int a, long b)
{
	/* Keeps the calls, and gives the body the five bytes and more that dynamic patching asks for. */
	asm volatile("" : "+r"(a), "+r"(b) : : "memory");
	return a * 3L + b;
}

UNTRACED static void loop_c2(long calls)
{
	for (long i = 0; i < calls; i++)
		hit_c2((int)i, i);
}

static const struct bench_loop loops[] = {
	{ "c", 2, loop_c2 },
};

#else

/*
 * hit_SHAPEn: its n arguments are the first n of (int, long, long, long, long, long).
 */
#define SHAPE(shape, body) \
	void hit_##shape##0(void); \
	void hit_##shape##2(int a, long b); \
	void hit_##shape##6(int a, long b, long c, long d, long e, long f); \
	FUNCTION void hit_##shape##0(void) \
	{ \
		asm(body); \
	} \
	FUNCTION void hit_##shape##2(int a, long b) \
	{ \
		asm(body); \
	} \
	FUNCTION void hit_##shape##6(int a, long b, long c, long d, long e, long f) \
	{ \
		asm(body); \
	} \
	static void loop_##shape##0(long calls) \
	{ \
		for (long i = 0; i < calls; i++) \
			hit_##shape##0(); \
	} \
	static void loop_##shape##2(long calls) \
	{ \
		for (long i = 0; i < calls; i++) \
			hit_##shape##2((int)i, i); \
	} \
	static void loop_##shape##6(long calls) \
	{ \
		for (long i = 0; i < calls; i++) \
			hit_##shape##6((int)i, i, i, i, i, i); \
	}

#define LOOPS(shape) \
	{ #shape, 2, loop_##shape##2 }, { #shape, 0, loop_##shape##0 }, \
	{ \
#shape, 6, loop_##shape##6 \
	}

#ifdef __clang__
#define FUNCTION __attribute__((naked, noinline, aligned(16)))
#else
#define FUNCTION __attribute__((naked, noipa, aligned(16)))
#endif

SHAPE(nop, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
	   "ret")
SHAPE(push, "push %rbp\n\t"
	    "mov %rsp, %rbp\n\t"
	    "xor %eax, %eax\n\t"
	    "pop %rbp\n\t"
	    "ret")
SHAPE(step, "sub $0x18, %rsp\n\t"
	    "xor %eax, %eax\n\t"
	    "add $0x18, %rsp\n\t"
	    "ret")

/* The same calls as of the shape `push`, below 20 functions with frame pointers. */
#define DEPTH 20

UNTRACED __attribute__((noinline)) static long push2_below(long calls, int depth)
{
	void *volatile frame = __builtin_frame_address(0);

	if (depth)
		return push2_below(calls, depth - 1) + !frame;
	for (long i = 0; i < calls; i++)
		hit_push2((int)i, i);
	return !frame;
}

static void loop_deep2(long calls)
{
	push2_below(calls, DEPTH);
}

static const struct bench_loop loops[] = { LOOPS(nop), LOOPS(push), LOOPS(step), { "deep", 2, loop_deep2 } };

#endif

int main(int argc, char **argv)
{
	return bench_main(argc, argv, loops, N_OF(loops));
}
