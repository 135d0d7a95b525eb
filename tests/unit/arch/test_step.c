/* Instructions as single steps see them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/step.h"
#include "base/cleanup.h"

static void test_kinds(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t length;
		enum kymo_step_kind kind;
	} rows[] = {
		{ "\x90", 1, KYMO_STEP_NEXT },
		{ "\xf3\xa4", 2, KYMO_STEP_NEXT },
		{ "\x0f\x0b", 2, KYMO_STEP_NEXT },
		{ "\xcc", 1, KYMO_STEP_NEXT },
		{ "\x74\x05", 2, KYMO_STEP_CONDITIONAL },
		{ "\x0f\x84\x01\x01\x01\x01", 6, KYMO_STEP_CONDITIONAL },
		{ "\xe2\xfe", 2, KYMO_STEP_CONDITIONAL },
		{ "\xe3\xfe", 2, KYMO_STEP_CONDITIONAL },
		{ "\xeb\xfe", 2, KYMO_STEP_JUMP },
		{ "\xff\xe0", 2, KYMO_STEP_JUMP },
		{ "\x3e\xff\x24\xc5\x01\x01\x01\x01", 8, KYMO_STEP_JUMP },
		{ "\xe8\x01\x01\x01\x01", 5, KYMO_STEP_CALL },
		{ "\xff\xd0", 2, KYMO_STEP_CALL },
		{ "\xc3", 1, KYMO_STEP_RETURN },
		{ "\xf3\xc3", 2, KYMO_STEP_RETURN },
		{ "\xc2\x08\x01", 3, KYMO_STEP_RETURN },
		{ "\x0f\x05", 2, KYMO_STEP_SYSCALL },
		{ "\xcd\x80", 2, KYMO_STEP_SYSCALL },
	};

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		struct kymo_step step;

		assert_int_equal(kymo_step_of((const uint8_t *)rows[i].bytes, rows[i].length, &step), 0);
		assert_int_equal(step.length, rows[i].length);
		assert_int_equal(step.kind, rows[i].kind);
		if (rows[i].length > 1)
			assert_true(kymo_step_of((const uint8_t *)rows[i].bytes, rows[i].length - 1u, &step) ||
				    step.length < rows[i].length);
	}
}

static void test_branches(void **state)
{
	const struct kymo_step next = { .kind = KYMO_STEP_NEXT, .length = 3 };
	const struct kymo_step conditional = { .kind = KYMO_STEP_CONDITIONAL, .length = 2 };
	const struct kymo_step call = { .kind = KYMO_STEP_CALL, .length = 5 };
	const struct kymo_step syscall = { .kind = KYMO_STEP_SYSCALL, .length = 2 };

	assert_false(kymo_step_branches(&next, 100, 103));
	assert_false(kymo_step_branches(&next, 100, 100));
	assert_true(kymo_step_branches(&next, 100, 500));
	assert_false(kymo_step_branches(&conditional, 100, 102));
	assert_true(kymo_step_branches(&conditional, 100, 100));
	assert_true(kymo_step_branches(&call, 100, 105));
	assert_false(kymo_step_branches(&syscall, 100, 102));
	assert_false(kymo_step_branches(&syscall, 100, 100));
	assert_true(kymo_step_branches(&syscall, 100, 90));
}

static void test_flags(void **state)
{
	struct user_regs_struct registers = { .rip = 100, .rsp = 1000, .eflags = 0x246 };
	struct kymo_step step;
	uint16_t flags = 0x346;

	assert_int_equal(kymo_step_of((const uint8_t *)"\x9c", 1, &step), 0);
	assert_int_equal(step.flags.pushed, 8);
	assert_true(kymo_flags_clean(&flags));
	assert_int_equal(flags, 0x246);
	assert_false(kymo_flags_clean(&flags));
	assert_false(kymo_flags_pop(&step.flags, 0, &registers));

	assert_int_equal(kymo_step_of((const uint8_t *)"\x9d", 1, &step), 0);
	assert_int_equal(step.flags.popped, 8);
	registers.orig_rax = (uint64_t)-1;
	assert_true(kymo_flags_pop(&step.flags, 0xffffffff3cd7, &registers)); /* IF and IOPL are not the program's */
	assert_int_equal(registers.eflags & 0x3202, 0x202);
	assert_int_equal(registers.eflags & 0xcd5, 0xcd5);
	assert_int_equal(registers.rsp, 1008);
	assert_int_equal(registers.rip, 101);
	assert_false(kymo_flags_pop(&step.flags, 0x346, &registers)); /* the program wants to be stepped */
	assert_int_equal(registers.rip, 101);

	assert_int_equal(kymo_step_of((const uint8_t *)"\x66\x9d", 2, &step), 0);
	assert_int_equal(step.flags.popped, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
