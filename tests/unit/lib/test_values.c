/* What a probe gets, and what the thread that passes the marker keeps. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unwind.h>
#include <cmocka.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#include "state_x86_64.h"

#define CALL KYMO_MARKER_CALL

/* ---- arguments ------------------------------------------------------------------------------- */

static int n_calls;

static void probe_integers(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	n_calls++;
	assert_int_equal(va_arg(arguments, int), INT_MIN);
	assert_int_equal(va_arg(arguments, unsigned int), UINT_MAX);
	assert_true(va_arg(arguments, long) == LONG_MIN);
	assert_true(va_arg(arguments, unsigned long) == ULONG_MAX);
	assert_true(va_arg(arguments, long long) == -2);
	assert_true(va_arg(arguments, unsigned long long) == UINT64_C(0x123456789abcdef0));
	assert_int_equal(va_arg(arguments, int), -3);
	assert_int_equal(va_arg(arguments, int), 'c');
}

static void probe_peers(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	n_calls++;
	assert_true(va_arg(arguments, double) == 0.1);
	assert_true(va_arg(arguments, double) == (double)1.5f);
	assert_string_equal(va_arg(arguments, const char *), "a string");
	assert_ptr_equal(va_arg(arguments, void *), data);
	assert_null(va_arg(arguments, const char *));
	assert_true(va_arg(arguments, double) == -1e300);
	assert_int_equal(va_arg(arguments, int), 1);
	assert_string_equal(va_arg(arguments, const char *), "in an array");
}

__attribute__((noinline)) static void pass_values(void *pointer)
{
	volatile short small = -3;
	volatile float half = 1.5f;
	char array[] = "in an array";

	MARK(integers, "%d %u %ld %lu %lld %llu %hd %c", INT_MIN, UINT_MAX, LONG_MIN, ULONG_MAX, -2LL,
	     0x123456789abcdef0ULL, small, 'c');
	MARK(others, "%f %f %s %p %s %g %d %s", 0.1, half, "a string", pointer, (char *)NULL, -1e300, (_Bool)1, array);
}

static void a_probe_gets_eight_arguments_of_every_type(void **state)
{
	int here;

	assert_int_equal(
		kymo_marker_set_probe("integers", "%d %u %ld %lu %lld %llu %hd %c", probe_integers, NULL, CALL), 0);
	assert_int_equal(kymo_marker_set_probe("others", NULL, probe_peers, &here, CALL), 0);
	pass_values(&here);
	pass_values(&here);
	assert_int_equal(kymo_marker_disable_probe("integers", probe_integers, NULL, CALL), 0);
	assert_int_equal(kymo_marker_disable_probe("others", probe_peers, &here, CALL), 0);
	assert_int_equal(n_calls, 4);
}

static void take_some(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	va_arg(arguments, int);
	va_arg(arguments, int);
}

static void each_probe_gets_all_arguments(void **state)
{
	n_calls = 0;
	assert_int_equal(kymo_marker_set_probe("integers", NULL, take_some, NULL, CALL), 0);
	assert_int_equal(kymo_marker_set_probe("integers", NULL, probe_integers, NULL, CALL), 0);
	pass_values(NULL);
	assert_int_equal(n_calls, 1);
	assert_int_equal(kymo_marker_disable_probe("integers", take_some, NULL, CALL), 0);
	assert_int_equal(kymo_marker_disable_probe("integers", probe_integers, NULL, CALL), 0);
}

/* ---- what is above a probe -------------------------------------------------------------------- */

__attribute__((noinline)) static void outermost(int number);

struct walk {
	bool came_by;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = data;

	walk->came_by |= _Unwind_GetRegionStart(context) == (uintptr_t)&outermost;
	return _URC_NO_REASON;
}

static void unwind(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	_Unwind_Backtrace(look, data);
}

__attribute__((noinline)) static void marked(int number)
{
	volatile char some[100];

	some[0] = (char)number;
	MARK(deep, "%d", number);
	some[1] = some[0];
}

__attribute__((noinline)) static void outermost(int number)
{
	marked(number);
	__asm__ volatile(""); /* no tail call */
}

static void an_unwinder_walks_from_a_probe_to_the_callers_of_the_marker(void **state)
{
	struct walk walk = { 0 };

	assert_int_equal(kymo_marker_set_probe("deep", NULL, unwind, &walk, CALL), 0);
	outermost(1);
	assert_int_equal(kymo_marker_disable_probe("deep", unwind, &walk, CALL), 0);
	assert_true(walk.came_by);
}

/* ---- registers ------------------------------------------------------------------------------- */

#if defined(__x86_64__)

/* What C code may change. */
struct registers {
	_Alignas(64) unsigned char vectors[32][64];
	uint64_t masks[8];
	_Alignas(16) unsigned char x87[2][16];
	uint32_t mxcsr;
	uint16_t control;
};

#define EACH16(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15)
#define EACH_HIGH(x) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) x(30) x(31)
#define EACH_MASK(x) x(1) x(2) x(3) x(4) x(5) x(6) x(7)

/* The compiler is not told what changes: it has nothing in these registers in functions that do nothing else. */
#define LOAD_XMM(i) "movups " #i "*64(%0), %%xmm" #i "\n"
#define STORE_XMM(i) "movups %%xmm" #i ", " #i "*64(%0)\n"
#define ZERO_XMM(i) "xorps %%xmm" #i ", %%xmm" #i "\n"
#define LOAD_YMM(i) "vmovups " #i "*64(%0), %%ymm" #i "\n"
#define STORE_YMM(i) "vmovups %%ymm" #i ", " #i "*64(%0)\n"
#define LOAD_ZMM(i) "vmovups " #i "*64(%0), %%zmm" #i "\n"
#define STORE_ZMM(i) "vmovups %%zmm" #i ", " #i "*64(%0)\n"
#define ZERO_ZMM(i) "vpxorq %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n"
#define LOAD_MASK(i) "kmovq " #i "*8(%0), %%k" #i "\n"
#define STORE_MASK(i) "kmovq %%k" #i ", " #i "*8(%0)\n"
#define ZERO_MASK(i) "kxorq %%k" #i ", %%k" #i ", %%k" #i "\n"

static bool has_avx, has_avx512;

#define LOAD(from) \
	do { \
		__asm__ volatile("fldt (%0)\nfldt 16(%0)" : : "r"((from)->x87) : "memory"); \
		__asm__ volatile("ldmxcsr %0\nfldcw %1" : : "m"((from)->mxcsr), "m"((from)->control)); \
		__asm__ volatile(EACH16(LOAD_XMM) : : "r"((from)->vectors) : "memory"); \
		if (has_avx) \
			__asm__ volatile(EACH16(LOAD_YMM) : : "r"((from)->vectors) : "memory"); \
		if (has_avx512) \
			__asm__ volatile(EACH16(LOAD_ZMM) EACH_HIGH(LOAD_ZMM) : : "r"((from)->vectors) : "memory"); \
		if (has_avx512) \
			__asm__ volatile(EACH_MASK(LOAD_MASK) : : "r"((from)->masks) : "memory"); \
	} while (0)

#define STORE(to) \
	do { \
		__asm__ volatile(EACH16(STORE_XMM) : : "r"((to)->vectors) : "memory"); \
		if (has_avx) \
			__asm__ volatile(EACH16(STORE_YMM) : : "r"((to)->vectors) : "memory"); \
		if (has_avx512) \
			__asm__ volatile(EACH16(STORE_ZMM) EACH_HIGH(STORE_ZMM) : : "r"((to)->vectors) : "memory"); \
		if (has_avx512) \
			__asm__ volatile(EACH_MASK(STORE_MASK) : : "r"((to)->masks) : "memory"); \
		if (has_avx) \
			__asm__ volatile("vzeroupper"); \
		__asm__ volatile("stmxcsr %0\nfnstcw %1" : "=m"((to)->mxcsr), "=m"((to)->control)); \
		__asm__ volatile("fstpt 16(%0)\nfstpt (%0)" : : "r"((to)->x87) : "memory"); \
	} while (0)

__attribute__((noinline)) static void pass_with_registers(const struct registers *before, struct registers *after,
							  long number)
{
	LOAD(before);
	MARK(registers, "%ld %p %p", number, (const void *)before, (void *)after);
	STORE(after);
}

/* All of them change, and the x87 stack is empty: it takes eight values, and not more. */
static void spoil(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	uint32_t mxcsr = 0x7f80;
	uint16_t control = 0x0f7f, status;

	n_calls++;
	__asm__ volatile("fld1\nfld1\nfld1\nfld1\nfld1\nfld1\nfld1\nfld1\nfnstsw %0\nfninit\nfldcw %1"
			 : "=m"(status)
			 : "m"(control)
			 : "memory");
	assert_int_equal(status & 0x41, 0); /* no invalid operation, no stack fault */
	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	__asm__ volatile(EACH16(ZERO_XMM) : : : "memory");
	if (has_avx)
		__asm__ volatile("vzeroall" : : : "memory");
	if (has_avx512)
		__asm__ volatile(EACH16(ZERO_ZMM) EACH_HIGH(ZERO_ZMM) EACH_MASK(ZERO_MASK) : : : "memory");
}

static void fill(struct registers *registers)
{
	const long double some[2] = { 3.25L, -1e4000L };

	memset(registers, 0, sizeof(*registers));
	for (size_t i = 0; i < sizeof(registers->vectors); i++)
		registers->vectors[i / 64][i % 64] = (unsigned char)(i * 7 + i / 64 + 1);
	for (uint64_t i = 1; i < 8; i++)
		registers->masks[i] = i * UINT64_C(0x0123456789abcdef);
	for (size_t i = 0; i < 2; i++)
		memcpy(registers->x87[i], &some[i], 10);
	registers->mxcsr = 0x3f80; /* rounding up */
	registers->control = 0x0b7f;
}

static void check_registers(void)
{
	static struct registers before, after;
	uint32_t usual = 0x1f80;

	n_calls = 0;
	fill(&before);
	memset(&after, 0, sizeof(after));
	assert_int_equal(kymo_marker_set_probe("registers", NULL, spoil, NULL, CALL), 0);
	pass_with_registers(&before, &after, 1);
	__asm__ volatile("fninit\nldmxcsr %0" : : "m"(usual));
	assert_int_equal(kymo_marker_disable_probe("registers", spoil, NULL, CALL), 0);
	assert_int_equal(n_calls, 1);
	for (int i = 0; i < (has_avx512 ? 32 : 16); i++)
		assert_memory_equal(after.vectors[i], before.vectors[i], has_avx512 ? 64 : has_avx ? 32 : 16);
	if (has_avx512)
		assert_memory_equal(after.masks, before.masks, sizeof(before.masks));
	assert_memory_equal(after.x87, before.x87, sizeof(before.x87));
	assert_int_equal(after.mxcsr & ~0x3fu, before.mxcsr & ~0x3fu);
	assert_int_equal(after.control, before.control);
}

static void vector_mask_and_x87_registers_are_kept(void **state)
{
	has_avx = __builtin_cpu_supports("avx");
	has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
	check_registers();
}

/* As on a processor that does not have the newest instruction for it. */
static void registers_are_kept_by_older_instructions(void **state)
{
	uint64_t size = kymo_lib_state_size;
	uint32_t how = kymo_lib_state_how;
	unsigned int a, b, c, d;

	if (how == KYMO_LIB_XSAVEC) {
		__cpuid_count(0xd, 0, a, b, c, d);
		kymo_lib_state_how = KYMO_LIB_XSAVE;
		kymo_lib_state_size = b;
		check_registers();
	}
	has_avx = has_avx512 = false;
	kymo_lib_state_how = KYMO_LIB_FXSAVE;
	kymo_lib_state_size = 512;
	check_registers();
	kymo_lib_state_how = how;
	kymo_lib_state_size = size;
}

#else

static void vector_mask_and_x87_registers_are_kept(void **state)
{
	skip(); /* elsewhere the compiler sees the call */
}

static void registers_are_kept_by_older_instructions(void **state)
{
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_probe_gets_eight_arguments_of_every_type),
		cmocka_unit_test(each_probe_gets_all_arguments),
		cmocka_unit_test(an_unwinder_walks_from_a_probe_to_the_callers_of_the_marker),
		cmocka_unit_test(vector_mask_and_x87_registers_are_kept),
		cmocka_unit_test(registers_are_kept_by_older_instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
