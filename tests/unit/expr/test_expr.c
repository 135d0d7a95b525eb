/* Expressions: the tree and the form of each, and what is said of bad ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/caret.h"
#include "compiling.h"

/* a b c: registers 0 1 2, long; i: register 3, int; u: unsigned int; h: unsigned char; %s: a word of the stack */
static struct kymo_error *find(void *data, const char *text, const char *name, size_t size,
			       struct kymo_expr_meaning *ret)
{
	static const struct known known[] = {
		{ "a", { .code = KYMO_FORM_REGISTER, .value = 0 }, { .size = 8, .is_signed = true } },
		{ "b", { .code = KYMO_FORM_REGISTER, .value = 1 }, { .size = 8, .is_signed = true } },
		{ "c", { .code = KYMO_FORM_REGISTER, .value = 2 }, { .size = 8, .is_signed = true } },
		{ "i", { .code = KYMO_FORM_REGISTER, .value = 3 }, { .size = 4, .is_signed = true } },
		{ "u", { .code = KYMO_FORM_REGISTER, .value = 4 }, { .size = 4 } },
		{ "h", { .code = KYMO_FORM_REGISTER, .value = 5 }, { .size = 1 } },
		{ "%s", { .code = KYMO_FORM_STACK, .value = 2 }, { .size = 8, .is_signed = true } },
		{ "func", { .code = KYMO_FORM_FUNC }, { .size = 8, .is_string = true, .n = KYMO_FORM_TEXT_MAX } },
		{ "probe", { .code = KYMO_FORM_PROBE }, { .size = 8, .is_string = true, .n = KYMO_FORM_TEXT_MAX } },
	};

	if (find_known(known, kymo_countof(known), name, size, ret))
		return NULL;
	return kymo_error_at(text, name, "there is no %.*s", (int)size, name);
}

static const struct kymo_expr_names names = { .find = find };

static void is(const char *text, const char *type_name, int64_t expected)
{
	const uint64_t registers[16] = { 10, 3, (uint64_t)-5, 0xffffffff00000007, 0xfffffffffffffff0, 0x1ff };
	const struct kymo_form_input input = { .registers = registers };
	struct kymo_expr_type type;
	char name[KYMO_EXPR_TYPE_NAME_MAX];
	struct kymo_error *error;
	struct kymo_form form;
	uint64_t value = 0;

	error = compile(text, NULL, &form, &type);
	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_true(kymo_form_check(&form, 16, 255));
	assert_true(kymo_form_run(&form, &input, &value));
	assert_string_equal(kymo_expr_type_name(type, name), type_name);
	if ((int64_t)value != expected)
		fail_msg("%s is %lld, not %lld", text, (long long)value, (long long)expected);
}

static void refused_begins(const char *text, const char *sentence)
{
	struct kymo_expr_type type;
	struct kymo_form form;
	struct kymo_error *error = compile(text, NULL, &form, &type);

	assert_non_null(error);
	assert_non_null(strstr(error->message, sentence));
	kymo_error_destroy(error);
}

/* Each event has numbers in their place, so nothing is read for them. */
static void words_of_events_are_operations(void **state)
{
	becomes("func", "  str: text\n"
			"    func: unsigned long\n"
			"   0  func\n");
	becomes("probe != \"malloc\"", "  !=: int\n"
				       "    str: text\n"
				       "      probe: unsigned long\n"
				       "    \"...\": text\n"
				       "   0  probe 32 from 0\n"
				       "   1  value 1819042157\n"
				       "   2  equal\n"
				       "   3  jump-if-zero 14\n"
				       "   4  probe 16 from 4\n"
				       "   5  value 25455\n"
				       "   6  equal\n"
				       "   7  jump-if-zero 12\n"
				       "   8  probe 8 from 6\n"
				       "   9  value 0\n"
				       "  10  equal\n"
				       "  11  jump 13\n"
				       "  12  value 0\n"
				       "  13  jump 15\n"
				       "  14  value 0\n"
				       "  15  not\n");
	refused("func + 1", "column 1: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
			    "  func + 1\n  ^");
}

static void trees_and_forms_are_shown(void **state)
{
	becomes("a > 4K && i", "  &&: int\n"
			       "    >: int\n"
			       "      a: long\n"
			       "      4096: int\n"
			       "    i: int\n"
			       "   0  value 4096\n"
			       "   1  register 0\n"
			       "   2  less signed\n"
			       "   3  jump-if-zero 8\n"
			       "   4  register 3\n"
			       "   5  extend s32\n"
			       "   6  truth\n"
			       "   7  jump 9\n"
			       "   8  value 0\n");
	becomes("(u8)(i + u) / 2", "  /: int\n"
				   "    cast: unsigned char\n"
				   "      +: unsigned int\n"
				   "        i: int\n"
				   "        u: unsigned int\n"
				   "    2: int\n"
				   "   0  register 3\n"
				   "   1  extend s32\n"
				   "   2  extend u32\n"
				   "   3  register 4\n"
				   "   4  extend u32\n"
				   "   5  add\n"
				   "   6  extend u32\n"
				   "   7  extend u8\n"
				   "   8  value 2\n"
				   "   9  divide signed\n"
				   "  10  extend s32\n");
	becomes("1 + 2 * 3", "  7: int\n"
			     "   0  value 7\n");
	becomes("%s % a ? -a : ~a", "  ?:: long\n"
				    "    %: long\n"
				    "      %s: long\n"
				    "      a: long\n"
				    "    -: long\n"
				    "      a: long\n"
				    "    ~: long\n"
				    "      a: long\n"
				    "   0  stack 2\n"
				    "   1  register 0\n"
				    "   2  remainder signed\n"
				    "   3  jump-if-zero 7\n"
				    "   4  register 0\n"
				    "   5  negate\n"
				    "   6  jump 9\n"
				    "   7  register 0\n"
				    "   8  complement\n");
}

static void operators_bind_as_in_c(void **state)
{
	is("a - b - c", "long", 12);
	is("a - b * c", "long", 25);
	is("a << 1 + 1", "long", 40);
	is("a & 6 == 6", "long", 0);
	is("a | 1 ^ 3 & 2", "long", 11);
	is("a < b == 0", "int", 1);
	is("0 || a && 0", "int", 0);
	is("a ? b : c ? 1 : 2", "long", 3);
	is("!a + 1", "int", 1);
	is("-a + 1", "long", -9);
	is("- -a", "long", 10);
	is("(a+b)*(c)", "long", -65);
	is("a>=10&&b<=3&&c!=5", "int", 1);
}

static void types_are_those_of_c(void **state)
{
	is("i", "int", 7);
	is("u", "unsigned int", 0xfffffff0);
	is("h", "unsigned char", 0xff);
	is("h + h", "int", 510);
	is("u + 32", "unsigned int", 16);
	is("u + 32l", "long", 0x100000010);
	is("i - 8", "int", -1);
	is("i - 8 < u", "int", 0);
	is("c < u", "int", 1);
	is("c < 0ul", "int", 0);
	is("(int)u", "int", -16);
	is("(unsigned long)c", "unsigned long", -5);
	is("(short)(a * 10000)", "short", -31072);
	is("(unsigned char)c", "unsigned char", 251);
	is("(signed char)u >> 2", "int", -4);
	is("(unsigned)c >> 28", "unsigned int", 15);
	is("c >> 1", "long", -3);
	is("1 << 33", "int", 2);
	is("-u", "unsigned int", 16);
	is("~h", "int", -256);
	is("c / 2", "long", -2);
	is("c % 3", "long", -2);
	is("c % 3u", "long", -2);
	is("sizeof(long long) + sizeof ( uint16_t )", "unsigned long", 10);
}

static void constants_are_read(void **state)
{
	is("0x7fffffff", "int", 0x7fffffff);
	is("0x80000000", "unsigned int", 0x80000000);
	is("2147483648", "long", 2147483648);
	is("0xffffffffffffffff", "unsigned long", -1);
	is("017", "int", 15);
	is("3K", "int", 3072);
	is("2G", "long", 2147483648);
	is("4us", "long", 4000);
	is("5s", "long", 5000000000);
	is("7UL", "unsigned long", 7);
	is("'a'", "int", 97);
	is("'\\n' + '\\x41' + '\\101' + '\\''", "int", 10 + 65 + 65 + 39);
}

static void what_is_wrong_is_marked(void **state)
{
	refused("", "column 1: expected a value, such as arg0, %di or 42\n  \n  ^");
	refused("a >", "column 4: expected a value, such as arg0, %di or 42\n  a >\n     ^");
	refused("a b", "column 3: expected an operator, such as == or &&, or the end\n  a b\n    ^");
	refused("(a", "column 3: expected ')' or an operator\n  (a\n    ^");
	refused("a / (2 - 2)", "column 3: this is a division by zero\n  a / (2 - 2)\n    ^");
	refused("1 % 0", "column 3: this is a division by zero\n  1 % 0\n    ^");
	refused("a + size", "column 5: there is no size\n  a + size\n      ^");
	refused("a += 1", "column 3: nothing can be changed; write == to compare\n  a += 1\n    ^");
	refused("12Q", "column 3: no suffix 'Q' of a number; there are u, l, ul, K, M, G, T, ns, us, ms and s\n"
		       "  12Q\n    ^");
	refused("99999999999T", "column 1: the number does not fit in 64 bits\n  99999999999T\n  ^");
	refused("a ? b", "column 6: expected ':' and what the value is otherwise\n  a ? b\n       ^");
	refused("'ab'", "column 1: expected one character between quotes, such as 'a' or '\\n'\n  'ab'\n  ^");
	refused("sizeof a",
		"column 8: expected '(' and a type or a value after sizeof, such as sizeof(long)\n  sizeof a\n"
		"         ^");
}

static void what_is_too_large_is_refused(void **state)
{
	char text[2000] = "";

	for (int k = 0; k < 300; k++)
		strcat(text, "(");
	refused_begins(text, "too many brackets and signs within each other");
	strcpy(text, "a");
	for (int k = 0; k < 200; k++)
		strcat(text, " + a");
	refused_begins(text, "the expression is too long: 128 values and operators are the most");
	strcpy(text, "a / b");
	for (int k = 0; k < KYMO_FORM_FAULTS_MAX; k++)
		strcat(text, " / b");
	refused_begins(text, "the expression has more than 20 divisions and reads of memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees_and_forms_are_shown),    cmocka_unit_test(words_of_events_are_operations),
		cmocka_unit_test(operators_bind_as_in_c),       cmocka_unit_test(types_are_those_of_c),
		cmocka_unit_test(constants_are_read),           cmocka_unit_test(what_is_wrong_is_marked),
		cmocka_unit_test(what_is_too_large_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
