/* Texts and bytes of a computed length: what is compared, what is recorded, and that no byte more is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/caret.h"
#include "compiling.h"

#define REGISTER(n) \
	{ \
		.code = KYMO_FORM_REGISTER, .value = (n) \
	}

static const struct kymo_ctype t_char = { .kind = KYMO_CTYPE_CHARACTER, .name = "char", .size = 1, .is_signed = true };
static const struct kymo_ctype t_name = { .kind = KYMO_CTYPE_ARRAY, .name = "char[16]", .size = 16, .of = &t_char };

static const struct kymo_ctype t_int = { .kind = KYMO_CTYPE_INTEGER, .name = "int", .size = 4, .is_signed = true };
static const struct kymo_ctype t_ints = { .kind = KYMO_CTYPE_POINTER, .name = "int *", .size = 8, .of = &t_int };
static const struct kymo_ctype t_large = { .kind = KYMO_CTYPE_STRUCT, .name = "struct large", .size = 129 };
static const struct kymo_ctype t_larges = {
	.kind = KYMO_CTYPE_POINTER, .name = "struct large *", .size = 8, .of = &t_large
};

static const struct known values[] = {
	{ "ints", REGISTER(0), { .size = 8, .of = &t_ints } },
	{ "larges", REGISTER(0), { .size = 8, .of = &t_larges } },
	{ "p", REGISTER(0), { .size = 8, .is_signed = true } },
	{ "n", REGISTER(1), { .size = 8, .is_signed = true } },
	{ "i", REGISTER(1), { .size = 4, .is_signed = true } },
	{ "u", REGISTER(1), { .size = 4 } },
	{ "q", REGISTER(2), { .size = 8, .is_signed = true } },
};

static struct kymo_error *find(void *data, const char *text, const char *name, size_t size,
			       struct kymo_expr_meaning *ret)
{
	if (find_known(values, sizeof(values) / sizeof(values[0]), name, size, ret))
		return NULL;
	if (size == 4 && !memcmp(name, "name", 4)) { /* at the address in p */
		*ret = (struct kymo_expr_meaning){ .type = kymo_expr_type_of(&t_name), .is_address = true };
		ret->form = (struct kymo_form){ .n = 1, .ops[0] = REGISTER(0) };
		return NULL;
	}
	return kymo_error_at(text, name, "there is no %.*s", (int)size, name);
}

static const struct kymo_expr_names names = { .find = find };

/* ---- memory that ends ------------------------------------------------------------------------ */

static const char memory[] = "GET /index.html HTTP/1.1";
static size_t n_there;

static bool load(void *data, uint64_t address, unsigned int size, uint64_t *ret)
{
	const uint64_t at = address - (uint64_t)memory;

	if (at > n_there || size > n_there - at)
		return false;
	*ret = 0;
	memcpy(ret, memory + at, size);
	return true;
}

static bool run(const char *text, uint64_t n, size_t there, uint64_t *ret, uint64_t *wanted)
{
	const uint64_t registers[16] = { (uint64_t)memory, n };
	const struct kymo_form_input input = { .registers = registers, .load = load, .wanted = wanted };
	struct kymo_expr_type type;
	struct kymo_error *error;
	struct kymo_form form;

	n_there = there;
	error = compile(text, NULL, &form, &type);
	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_true(kymo_form_check(&form, 16, 255));
	return kymo_form_run(&form, &input, ret);
}

/* With so many bytes that are wanted, and as many that are there. */
static void is(const char *text, uint64_t n, size_t there, uint64_t expected)
{
	uint64_t value = 77;

	assert_true(run(text, n, there, &value, NULL));
	if (value != expected)
		fail_msg("%s of %llu bytes is %llu", text, (unsigned long long)n, (unsigned long long)value);
}

static void faults(const char *text, uint64_t n, size_t there)
{
	uint64_t value;

	assert_false(run(text, n, there, &value, NULL));
}

static void texts_of_a_computed_length_are_compared(void **state)
{
	static const uint64_t long_ones[] = { 4, 24, 25, 128, 129, INT64_MAX, 1ull << 63, UINT64_MAX };

	is("str(p, n) == \"GET\"", 3, 3, 1);
	is("str(p, n) == \"GET\"", 2, 2, 0);
	is("str(p, n) == \"GET\"", 0, 0, 0);
	is("str(p, n) != \"GET\"", 2, 0, 1);
	is("str(p, n) == \"GEX\"", 3, 3, 0);
	is("\"GET\" == str(p, n)", 3, 3, 1);
	is("str(p, n) == \"\"", 0, 0, 1);
	is("str(p, n) == \"\"", 1, 1, 0);
	is("str(p, n) == \"GET /index.html\"", 15, 15, 1);
	is("str(p, n) == \"GET /index.html\"", 16, 16, 0);
	is("str(p, n) == \"GET /index.html HTTP/1.1\"", 24, 24, 1);
	is("str(p, n - 1) == \"GET\" && n == 4", 4, 3, 1);
	is("str(p, u) == \"GET\"", 0xffffffff00000003, 3, 1);
	for (size_t k = 0; k < sizeof(long_ones) / sizeof(long_ones[0]); k++) {
		is("str(p, n) == \"GET\"", long_ones[k], 4, 0);
		is("str(p, i) == \"GE\"", long_ones[k], 4, 0);
		/* up to its NUL */
		is("str(p, n) == \"GET /index.html HTTP/1.1\"", long_ones[k], sizeof(memory), long_ones[k] >= 24);
		is("str(p + 24, n) == \"\"", long_ones[k], sizeof(memory), 1);
	}
	is("str(p, i) == \"GET /index.html HTTP/1.1\"", 0xffffffff, sizeof(memory), 1); /* -1 */
}

static void what_cannot_be_read_is_a_fault(void **state)
{
	faults("str(p, n) == \"GET\"", 3, 2);
	faults("str(p, n) == \"GET\"", 4, 3);
	faults("str(p, n) == \"\"", 1, 0);
	faults("str(p, *(long *)q) == \"GET\"", 3, 100);
}

static void what_is_recorded_has_its_length(void **state)
{
	static const char *const texts[] = { "str(p, n)", "buf(p, n)", "(str(p, n))" };
	uint64_t value, wanted;

	for (size_t k = 0; k < 3; k++) {
		for (uint64_t n = UINT64_MAX - 2; n != 3; n++) {
			assert_true(run(texts[k], n, 0, &value, &wanted));
			assert_true(value == (uint64_t)memory && wanted == n);
		}
	}
	assert_true(run("str(p + 4, n - 4)", 9, 0, &value, &wanted));
	assert_true(value == (uint64_t)memory + 4 && wanted == 5);
	assert_true(run("str(p, i)", 0x100000000 - 1, 0, &value, &wanted)); /* -1 */
	assert_true(wanted == UINT64_MAX);
	assert_true(run("str(p, u)", UINT64_MAX, 0, &value, &wanted));
	assert_true(wanted == UINT32_MAX);
	assert_false(run("buf(p, *(long *)q)", 3, 100, &value, &wanted));
}

static void wants(const char *text, uint64_t n, uint64_t from, uint64_t bytes)
{
	uint64_t value, wanted;

	assert_true(run(text, n, 0, &value, &wanted));
	assert_int_equal(value - (uint64_t)memory, from);
	assert_int_equal(wanted, bytes);
}

static void pieces_have_a_last_element_that_is_computed(void **state)
{
	wants("ints[0..n]", 3, 0, 16);
	wants("ints[0..n - 1]", 0, 0, 0);
	wants("ints[2..n]", 3, 8, 8);
	wants("ints[2..n]", 1, 8, 0);
	wants("ints[0..i]", UINT32_MAX, 0, 0); /* -1 */
	wants("name[4..n]", 7, 4, 4);
	wants("((char *)p)[1..n]", 7, 1, 7);
	wants("ints[0..n]", (uint64_t)-3, 0, 0);
}

/* As many bytes, or elements, as there is room for. */
static void has_room_for(const char *text, uint32_t n)
{
	struct kymo_expr_type type;
	struct kymo_form form;

	assert_null(compile(text, NULL, &form, &type));
	assert_int_equal(type.n, n);
}

static void there_is_room_for_the_limit_or_the_array(void **state)
{
	has_room_for("str(p, n)", KYMO_FORM_WANTED_MAX);
	has_room_for("buf(p, n)", KYMO_FORM_WANTED_MAX);
	has_room_for("str(name, n)", 16);
	has_room_for("buf(name, n)", 16);
	has_room_for("str(p, 300)", 300);
	has_room_for("str(p, 4 * 16 + sizeof(long))", 72); /* it is known */
	has_room_for("str(name)", 16);
	has_room_for("ints[0..n]", 32);
	has_room_for("ints[0..7]", 8);
	has_room_for("ints[1..4 + 4]", 8);
	has_room_for("name[4..n]", 12);
	has_room_for("name[16..n]", 128);
}

static void forms_are_shown(void **state)
{
	becomes("str(p, n)", "  str: text\n"
			     "    p: long\n"
			     "    n: long\n"
			     "   0  register 0\n"
			     "   1  register 1\n"
			     "   2  want\n");
	becomes("buf(p + 1, i)", "  buf: unsigned char[128]\n"
				 "    +: long\n"
				 "      p: long\n"
				 "      1: int\n"
				 "    i: int\n"
				 "   0  register 0\n"
				 "   1  value 1\n"
				 "   2  add\n"
				 "   3  register 1\n"
				 "   4  extend s32\n"
				 "   5  want\n");
	becomes("ints[2..i]", "  [2..]: int[32]\n"
			      "    ints: int *\n"
			      "    i: int\n"
			      "   0  register 0\n"
			      "   1  value 8\n"
			      "   2  add\n"
			      "   3  register 1\n"
			      "   4  extend s32\n"
			      "   5  value -1\n"
			      "   6  add\n"
			      "   7  pick 0\n"
			      "   8  value 63\n"
			      "   9  shift-right signed\n"
			      "  10  complement\n"
			      "  11  and\n"
			      "  12  pick 0\n"
			      "  13  value 31\n"
			      "  14  shift-right unsigned\n"
			      "  15  truth\n"
			      "  16  negate\n"
			      "  17  or\n"
			      "  18  value 4\n"
			      "  19  multiply\n"
			      "  20  want\n");
	becomes("str(p, n) == \"GE\"", "  ==: int\n"
				       "    str: text\n"
				       "      p: long\n"
				       "      n: long\n"
				       "    \"...\": text\n"
				       "   0  register 1\n"
				       "   1  pick 0\n"
				       "   2  value 2\n"
				       "   3  less unsigned\n"
				       "   4  jump-if-zero 7\n"
				       "   5  value 0\n"
				       "   6  jump 26\n"
				       "   7  register 0\n"
				       "   8  load 16\n"
				       "   9  value 17735\n"
				       "  10  equal\n"
				       "  11  jump-if-zero 25\n"
				       "  12  pick 0\n"
				       "  13  value 2\n"
				       "  14  equal\n"
				       "  15  jump-if-zero 18\n"
				       "  16  value 1\n"
				       "  17  jump 24\n"
				       "  18  register 0\n"
				       "  19  value 2\n"
				       "  20  add\n"
				       "  21  load 8\n"
				       "  22  value 0\n"
				       "  23  equal\n"
				       "  24  jump 26\n"
				       "  25  value 0\n"
				       "  26  swap\n"
				       "  27  drop\n");
}

static void what_is_wrong_is_marked(void **state)
{
	refused("str(p, name)", "column 8: a number is expected, and this is a pointer\n"
				"  str(p, name)\n         ^");
	refused("str(p, 1.5)", "column 8: this is a 'double', and a whole number is expected; convert it: (long)x\n"
			       "  str(p, 1.5)\n         ^");
	refused("str(p, 0)", "column 1: expected a number of bytes, such as str(arg0, 64)\n  str(p, 0)\n  ^");
	refused("buf(p, 2 - 3)", "column 1: expected a number of bytes, such as buf(arg0, 64)\n  buf(p, 2 - 3)\n  ^");
	refused("buf(p, )", "column 8: expected a value, such as arg0, %di or 42\n  buf(p, )\n         ^");
	refused("str(p, n, 3)", "column 9: expected ')' or an operator\n  str(p, n, 3)\n          ^");
	refused("sizeof(buf(p, n))", "column 1: the size of this is not known\n  sizeof(buf(p, n))\n  ^");
	refused("str(p, n) + 1", "column 1: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
				 "  str(p, n) + 1\n  ^");
	refused("str(p, str(p))", "column 8: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
				  "  str(p, str(p))\n         ^");
	refused("ints[0..name]", "column 9: a number is expected, and this is a pointer\n  ints[0..name]\n          ^");
	refused("larges[0..n]",
		"column 7: an element has more than 128 bytes, which is all that there is room for where the last one "
		"is computed; write numbers, as in [0..1]\n  larges[0..n]\n        ^");
	refused("ints[3..2 - 1]", "column 5: expected the first element and the last, as in [0..7]\n"
				  "  ints[3..2 - 1]\n      ^");
	refused("ints[0xffffffffffffffff..n]", "column 5: expected the first element and the last, as in [0..7]\n"
					       "  ints[0xffffffffffffffff..n]\n      ^");
	refused("ints[0..n] + 1", "column 5: a piece of an array can be recorded, but not computed with\n"
				  "  ints[0..n] + 1\n      ^");
	refused("sizeof(ints[0..n])", "column 1: the size of this is not known\n  sizeof(ints[0..n])\n  ^");
	refused("str(p, m)", "column 8: there is no m\n  str(p, m)\n         ^");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_a_computed_length_are_compared),
		cmocka_unit_test(what_cannot_be_read_is_a_fault),
		cmocka_unit_test(what_is_recorded_has_its_length),
		cmocka_unit_test(pieces_have_a_last_element_that_is_computed),
		cmocka_unit_test(there_is_room_for_the_limit_or_the_array),
		cmocka_unit_test(forms_are_shown),
		cmocka_unit_test(what_is_wrong_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
