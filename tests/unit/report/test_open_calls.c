/* Calls that have not returned at the end of a history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "ctf/ctf.h"
#include "report/open_calls.h"

#define CALL KYMO_CTF_BRANCH_CALL
#define RETURN KYMO_CTF_BRANCH_RETURN
#define JUMP KYMO_CTF_BRANCH_JUMP
#define SIGNAL KYMO_CTF_BRANCH_SIGNAL
#define KERNEL KYMO_CTF_BRANCH_KERNEL
#define ENTER KYMO_CTF_BRANCH_ENTER
#define EXEC KYMO_CTF_BRANCH_EXEC

static void check_open(const struct passage *passages, size_t n, const size_t *expected, size_t n_expected)
{
	struct open_calls open = { 0 };

	assert_true(kymo_open_calls_find(passages, n, &open));
	assert_int_equal(open.items.n, n_expected);
	for (size_t i = 0; i < n_expected; i++)
		assert_int_equal(open.items.items[i], expected[i]);
	kymo_vec_deinit(&open.items);
}

static void calls_that_returned_are_not_open(void **state)
{
	static const struct passage passages[] = {
		{ 0x100, 0x200, CALL, false }, { 0x210, 0x300, CALL, false }, { 0x305, 0x215, RETURN, false },
		{ 0x220, 0x200, JUMP, false }, { 0x230, 0x400, CALL, false },
	};
	static const size_t open[] = { 0, 4 };

	check_open(passages, kymo_countof(passages), open, kymo_countof(open));
	check_open(passages, 0, NULL, 0);
}

/* By longjmp, or an exception: what returns then ends those, too. */
static void a_return_ends_newer_calls(void **state)
{
	static const struct passage passages[] = {
		{ 0x100, 0x200, CALL, false },
		{ 0x210, 0x300, CALL, false },
		{ 0x310, 0x400, CALL, false },
		{ 0x405, 0x105, RETURN, false },
	};

	check_open(passages, kymo_countof(passages), NULL, 0);
}

static void a_return_to_a_call_before_the_history_ends_all(void **state)
{
	static const struct passage passages[] = {
		{ 0x100, 0x200, CALL, false },
		{ 0x210, 0x900, RETURN, false },
		{ 0x910, 0x300, CALL, false },
	};
	static const size_t open[] = { 2 };

	check_open(passages, kymo_countof(passages), open, kymo_countof(open));
}

/* Of recorded functions only: other code comes back, or calls. */
static void entries_come_back_or_are_calls(void **state)
{
	static const struct passage passages[] = {
		{ 0x100, 0x200, CALL, false }, { 0x210, 0x9000, CALL, false }, { 0, 0x700, ENTER, false },
		{ 0x710, 0x800, CALL, false }, { 0, 0x215, ENTER, false },
	};
	static const size_t open[] = { 0 }, before[] = { 0, 1, 3 };

	check_open(passages, 4, before, kymo_countof(before));
	check_open(passages, kymo_countof(passages), open, kymo_countof(open));
}

/* A comparator of qsort(): each of its returns leads to code that is not recorded. */
static void what_other_code_calls_returns_to_that(void **state)
{
	static const struct passage passages[] = {
		{ 0x100, 0x200, CALL, false },    { 0x210, 0x9000, CALL, false }, { 0, 0x700, ENTER, true },
		{ 0x720, 0x9020, RETURN, false }, { 0, 0x700, ENTER, true },      { 0x710, 0x800, CALL, false },
		{ 0x810, 0x9020, RETURN, false }, { 0, 0x215, ENTER, false },     { 0x220, 0x105, RETURN, false },
		{ 0x110, 0x9100, RETURN, false },
	};
	static const size_t within[] = { 0, 1 }, deep[] = { 0, 1, 5 }, back[] = { 0 };

	check_open(passages, 3, within, kymo_countof(within));
	check_open(passages, 4, within, kymo_countof(within));
	check_open(passages, 6, deep, kymo_countof(deep));
	check_open(passages, 7, within, kymo_countof(within));
	check_open(passages, 8, back, kymo_countof(back));
	check_open(passages, 9, NULL, 0);
	check_open(passages, kymo_countof(passages), NULL, 0);
}

static void handlers_are_calls_until_the_kernel_ends_them(void **state)
{
	static const struct passage passages[] = {
		{ 0x100, 0x200, CALL, false },
		{ 0x208, 0x500, SIGNAL, false },
		{ 0x510, 0x600, RETURN, false },
		{ 0x605, 0x208, KERNEL, false },
	};
	static const size_t open[] = { 0 }, within[] = { 0, 1 };

	check_open(passages, 2, within, kymo_countof(within));
	check_open(passages, 3, within, kymo_countof(within));
	check_open(passages, kymo_countof(passages), open, kymo_countof(open));
}

static void another_program_has_none(void **state)
{
	static const struct passage passages[] = { { 0x100, 0x200, CALL, false }, { 0, 0x900, EXEC, false } };

	check_open(passages, kymo_countof(passages), NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_returned_are_not_open),
		cmocka_unit_test(a_return_ends_newer_calls),
		cmocka_unit_test(a_return_to_a_call_before_the_history_ends_all),
		cmocka_unit_test(entries_come_back_or_are_calls),
		cmocka_unit_test(what_other_code_calls_returns_to_that),
		cmocka_unit_test(handlers_are_calls_until_the_kernel_ends_them),
		cmocka_unit_test(another_program_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
