/* Forms of agent expressions: as text, and with the values that the expressions have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/fetch.h"
#include "arch/registers.h"
#include "base/cleanup.h"
#include "expr/form_dump.h"
#include "gdb/agent_form.h"

#define PC 0x555555555144u

static size_t bytes_of(const char *text, uint8_t *ret)
{
	size_t n = 0;

	for (unsigned int byte; sscanf(text, " %2x", &byte) == 1; text += 2 + (text[2] == ' '))
		ret[n++] = (uint8_t)byte;
	return n;
}

static void check_text(const char *condition, const char *code, const char *expected)
{
	struct kymo_form form;
	uint8_t bytes[256];
	char *text = NULL;
	size_t size;
	FILE *out;

	print_message("%s\n", condition);
	assert_true(gdb_agent_compile(bytes, bytes_of(code, bytes), PC, &form));
	out = open_memstream(&text, &size);
	assert_non_null(out);
	kymo_form_dump(&form, kymo_register_name, out);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

/* As gdb 13 has them where a function of two arguments was compiled with -O0. */
static void conditions_of_gdb(void **state)
{
	check_text("i == 7", "26 00 06 22 10 02 22 ec 16 08 02 19 16 20 22 07 13 27",
		   "   0  register %bp\n"
		   "   1  value 16\n"
		   "   2  add\n"
		   "   3  value -20\n"
		   "   4  add\n"
		   "   5  load 32\n"
		   "   6  extend s32\n"
		   "   7  value 7\n"
		   "   8  equal\n");
	check_text("$rdi > 9 && $rdi < 20",
		   "26 00 05 22 09 2b 14 20 00 0d 21 00 1e 26 00 05 22 14 14 20 00 19 21 00 1e 22 01 21 00 20 22 00 27",
		   "   0  register %di\n"
		   "   1  value 9\n"
		   "   2  swap\n"
		   "   3  less signed\n"
		   "   4  not\n"
		   "   5  jump-if-zero 7\n"
		   "   6  jump 15\n"
		   "   7  register %di\n"
		   "   8  value 20\n"
		   "   9  less signed\n"
		   "  10  not\n"
		   "  11  jump-if-zero 13\n"
		   "  12  jump 15\n"
		   "  13  value 1\n"
		   "  14  jump 16\n"
		   "  15  value 0\n");
}

static void what_is_not_one_operation(void **state)
{
	check_text("$pc", "26 00 10 27", "   0  value 93824992235844\n");
	check_text("a negative number", "22 ff 16 08 27", "   0  value -1\n");
	check_text("a bit-field", "26 00 01 16 03 27",
		   "   0  register %bx\n"
		   "   1  value 61\n"
		   "   2  shift-left\n"
		   "   3  value 61\n"
		   "   4  shift-right signed\n");
	check_text("a long", "26 00 01 16 40 27", "   0  register %bx\n");
	check_text("$rbx << 3", "26 00 01 22 03 09 27",
		   "   0  register %bx\n"
		   "   1  value 3\n"
		   "   2  shift-left\n");
	check_text("$rax >> 64", "26 00 00 22 40 0a 27",
		   "   0  register %ax\n"
		   "   1  value 63\n"
		   "   2  shift-right signed\n");
	check_text("$rax << $rbp", "26 00 00 26 00 06 09 27",
		   "   0  register %ax\n"
		   "   1  register %bp\n"
		   "   2  pick 0\n"
		   "   3  value 64\n"
		   "   4  less unsigned\n"
		   "   5  jump-if-zero 8\n"
		   "   6  shift-left\n"
		   "   7  jump 11\n"
		   "   8  drop\n"
		   "   9  value 0\n"
		   "  10  and\n");
	check_text("an end in the middle", "26 00 00 20 00 09 22 07 27 22 09 27",
		   "   0  register %ax\n"
		   "   1  not\n"
		   "   2  jump-if-zero 5\n"
		   "   3  value 7\n"
		   "   4  jump 6\n"
		   "   5  value 9\n");
	/* One way leads to the extension with a constant, the other one with a register. */
	check_text("a constant of one way", "26 00 00 20 00 0c 26 00 00 21 00 0e 22 ff 16 08 27",
		   "   0  register %ax\n"
		   "   1  not\n"
		   "   2  jump-if-zero 5\n"
		   "   3  register %ax\n"
		   "   4  jump 6\n"
		   "   5  value 255\n"
		   "   6  extend s8\n");
	/* (unsigned char)(unsigned long)($rax ? 255 : $rdx), as gdb has it */
	check_text("a constant of one way, behind what changes nothing",
		   "26 00 00 20 00 0c 26 00 03 21 00 0e 22 ff 2a 40 2a 08 27",
		   "   0  register %ax\n"
		   "   1  not\n"
		   "   2  jump-if-zero 5\n"
		   "   3  register %dx\n"
		   "   4  jump 6\n"
		   "   5  value 255\n"
		   "   6  extend u8\n");
}

static void what_has_no_form(void **state)
{
	static const char *const rows[] = {
		"",
		"27",                            /* no value */
		"22 01 22 02 27",                /* two */
		"22 05",                         /* no end */
		"22",                            /* half an instruction */
		"26 00 11 27",                   /* $eflags */
		"26 00 28 27",                   /* a vector register */
		"22 01 22 02 22 03 33 29 29 27", /* rot */
		"22 01 28 29 29 27",             /* nothing is left */
		"22 01 32 01 27",                /* below the stack */
		"16 40 22 01 27",                /* nothing to extend */
		"21 00 00 27",                   /* backward */
		"22 01 20 00 00 27",
		"22 01 20 00 06 27",          /* to the end of the code */
		"22 01 20 00 06 23 22 05 27", /* into an instruction */
		"22 01 20 ff ff 27",
		"21 00 05 22 07 22 09 27",       /* what is never executed */
		"22 01 20 00 08 22 07 22 09 27", /* with different depths */
		"22 01 0c 08 27",                /* trace */
		"2c 00 00 27",                   /* getv */
		"34 00 00 27",                   /* printf */
		"22 01 1b 27",
		"22 01 01 27", /* floating point */
		"22 01 00 27",
		"22 01 22 01 ff 27", /* unknown */
	};
	struct kymo_form form;
	uint8_t bytes[2048];

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		print_message("%s\n", rows[i]);
		assert_false(gdb_agent_compile(bytes, bytes_of(rows[i], bytes), PC, &form));
	}
	for (size_t i = 0; i < sizeof(bytes); i += 2)
		memcpy(bytes + i, "\x22\x01", 2);
	bytes[2 * KYMO_FORM_DEPTH_MAX + 2] = 0x27;
	assert_false(gdb_agent_compile(bytes, 2 * KYMO_FORM_DEPTH_MAX + 3, PC, &form)); /* too deep */
	memset(bytes + 2, 0x12, sizeof(bytes) - 2);
	bytes[KYMO_FORM_OPS_MAX + 1] = 0x27;
	assert_true(gdb_agent_compile(bytes, KYMO_FORM_OPS_MAX + 2, PC, &form));
	bytes[KYMO_FORM_OPS_MAX + 1] = 0x12;
	bytes[KYMO_FORM_OPS_MAX + 2] = 0x27;
	assert_false(gdb_agent_compile(bytes, KYMO_FORM_OPS_MAX + 3, PC, &form)); /* too long */
	bytes[sizeof(bytes) - 1] = 0x27;
	assert_false(gdb_agent_compile(bytes, sizeof(bytes), PC, &form));
	memset(bytes + 2, 0x17, sizeof(bytes) - 2);
	bytes[KYMO_FORM_FAULTS_MAX + 3] = 0x27;
	assert_false(gdb_agent_compile(bytes, KYMO_FORM_FAULTS_MAX + 4, PC, &form)); /* too many reads */
}

/* Debuggers' numbers are those of the target description. */
static void registers_are_those_of_the_description(void **state)
{
	struct kymo_register list[KYMO_REGISTERS_MAX];
	enum kymo_type type;

	assert_true(kymo_registers_list(3, list) > 17);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(kymo_register_of_debugger(i),
				 kymo_register_parse(list[i].name, strlen(list[i].name), &type));
	assert_int_equal(kymo_register_of_debugger(16), -1);
	assert_int_equal(kymo_register_of_debugger(UINT32_MAX), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_of_gdb),
		cmocka_unit_test(what_is_not_one_operation),
		cmocka_unit_test(what_has_no_form),
		cmocka_unit_test(registers_are_those_of_the_description),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
