/* Where uprobes may be, and where values are at one. */
#include <asm/ptrace.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/uprobe.h"

#include "fetches.h"

#define BASE UINT64_C(0x1000)

static int check(const uint8_t *bytes, size_t size, uint64_t at, const char *why)
{
	const struct kymo_span span = { BASE, bytes, size };
	char reason[200] = "";
	int result = kymo_uprobe_check(&span, BASE + at, reason, sizeof(reason));

	if (why && !strstr(reason, why))
		fail_msg("'%s' has no '%s'", reason, why);
	if (!why)
		assert_string_equal(reason, "");
	return result;
}

#define CHECK(at, why, ...) check((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), at, why)

static void the_length_of_an_instruction_comes_back(void **state)
{
	assert_int_equal(CHECK(0, NULL, 0x55, 0x48, 0x89, 0xe5), 1); /* push %rbp; mov %rsp,%rbp */
	assert_int_equal(CHECK(1, NULL, 0x55, 0x48, 0x89, 0xe5), 3);
	assert_int_equal(CHECK(0, NULL, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3), 4); /* endbr64 */
}

static void the_midst_of_an_instruction_is_refused(void **state)
{
	assert_int_equal(CHECK(2, "inside of an instruction", 0x55, 0x48, 0x89, 0xe5), -EPERM);
}

static void what_does_not_decode_is_refused(void **state)
{
	assert_int_equal(CHECK(1, "does not decode", 0x06, 0x90), -EPERM);
	assert_int_equal(CHECK(0, "does not decode", 0xe9, 0x00), -EPERM);
	assert_int_equal(CHECK(9, "outside", 0x90), -EPERM);
}

static void instructions_that_the_kernel_gets_wrong_or_refuses_are_refused(void **state)
{
	/* vmovups (%rdi),%zmm0 */
	assert_int_equal(CHECK(0, "EVEX", 0x62, 0xf1, 0x7c, 0x48, 0x10, 0x07), -EPERM);
	assert_int_equal(CHECK(0, "lock", 0xf0, 0x48, 0xff, 0x07), -EPERM); /* lock incq (%rdi) */
	/* cs nopw (%rax,%rax,1) */
	assert_int_equal(CHECK(0, "segment", 0x2e, 0x66, 0x0f, 0x1f, 0x04, 0x00), -EPERM);
	assert_int_equal(CHECK(0, "breakpoint", 0xcc), -EPERM);
	assert_int_equal(CHECK(0, "may not execute", 0xf4), -EPERM);
	/* vmovups (%rdi),%xmm0 */
	assert_int_equal(CHECK(0, NULL, 0xc5, 0xf8, 0x10, 0x07), 4);
	assert_int_equal(CHECK(0, NULL, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0), 9); /* mov %fs:0x28,%rax */
}

static void only_breakpoints_may_differ_from_the_file(void **state)
{
	static const uint8_t file[] = { 0x55, 0x48, 0x89, 0xe5 };

	assert_true(kymo_uprobe_is_free(file, file, sizeof(file)));
	assert_true(kymo_uprobe_is_free(file, (const uint8_t[]){ 0xcc, 0x48, 0x89, 0xe5 }, 4));
	assert_false(kymo_uprobe_is_free(file, (const uint8_t[]){ 0xe9, 0x48, 0x89, 0xe5 }, 4));
	assert_false(kymo_uprobe_is_free(file, (const uint8_t[]){ 0xcc, 0x48, 0x89, 0x00 }, 4));
}

static struct kymo_uprobe_value value(enum kymo_fetch_kind kind, int64_t n, bool is_return)
{
	const struct kymo_fetch fetch = FETCH(kind, KYMO_TYPE_X64, n);
	struct kymo_uprobe_value ret = { .at = 0xffff };

	assert_int_equal(kymo_uprobe_resolve(&fetch, is_return, &ret), 0);
	return ret;
}

static void check_value(struct kymo_uprobe_value got, enum kymo_uprobe_source source, size_t at, int64_t n)
{
	assert_int_equal(got.source, source);
	assert_int_equal(got.at, at);
	assert_int_equal(got.value, n);
}

static void values_are_found_where_the_calling_convention_has_them(void **state)
{
	check_value(value(KYMO_FETCH_REGISTER, 0, false), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rax), 0);
	check_value(value(KYMO_FETCH_REGISTER, 17, false), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, eflags), 0);
	check_value(value(KYMO_FETCH_ARGUMENT, 1, false), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rdi), 0);
	check_value(value(KYMO_FETCH_ARGUMENT, 6, false), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, r9), 0);
	check_value(value(KYMO_FETCH_ARGUMENT, 7, false), KYMO_UPROBE_MEMORY, offsetof(struct pt_regs, rsp), 8);
	check_value(value(KYMO_FETCH_STACK, 0, false), KYMO_UPROBE_MEMORY, offsetof(struct pt_regs, rsp), 0);
	check_value(value(KYMO_FETCH_STACK, 255, false), KYMO_UPROBE_MEMORY, offsetof(struct pt_regs, rsp), 2040);
	check_value(value(KYMO_FETCH_STACK_POINTER, 0, false), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rsp), 0);
	check_value(value(KYMO_FETCH_RETVAL, 0, true), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rax), 0);
	assert_int_equal(value(KYMO_FETCH_IMMEDIATE, -5, false).value, -5);
}

static void at_a_return_the_stack_is_as_before_the_ret(void **state)
{
	check_value(value(KYMO_FETCH_STACK_POINTER, 0, true), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rsp), -8);
	check_value(value(KYMO_FETCH_REGISTER, 4, true), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rsp), -8);
	check_value(value(KYMO_FETCH_STACK, 0, true), KYMO_UPROBE_REGISTER, offsetof(struct pt_regs, rip), 0);
	check_value(value(KYMO_FETCH_STACK, 2, true), KYMO_UPROBE_MEMORY, offsetof(struct pt_regs, rsp), 8);
}

static void numbers_out_of_range_are_refused(void **state)
{
	static const struct kymo_fetch bad[] = {
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_X64, 18), FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_X64, -1),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_X64, 0),  FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_X64, 262),
		FETCH(KYMO_FETCH_STACK, KYMO_TYPE_X64, 256),   FETCH(KYMO_FETCH_STACK, KYMO_TYPE_X64, -1),
	};
	struct kymo_uprobe_value ret;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kymo_uprobe_resolve(&bad[i], false, &ret), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_length_of_an_instruction_comes_back),
		cmocka_unit_test(the_midst_of_an_instruction_is_refused),
		cmocka_unit_test(what_does_not_decode_is_refused),
		cmocka_unit_test(instructions_that_the_kernel_gets_wrong_or_refuses_are_refused),
		cmocka_unit_test(only_breakpoints_may_differ_from_the_file),
		cmocka_unit_test(values_are_found_where_the_calling_convention_has_them),
		cmocka_unit_test(at_a_return_the_stack_is_as_before_the_ret),
		cmocka_unit_test(numbers_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
