/* Assignments: the tree and the form of each, and what is said of those that cannot be made. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/caret.h"

#define KYMO_ASSIGNS true
#include "compiling.h"

/* a: register 0, long; i: register 3, int */
static struct kymo_error *find(void *data, const char *text, const char *name, size_t size,
			       struct kymo_expr_meaning *ret)
{
	static const struct known known[] = {
		{ "a", { .code = KYMO_FORM_REGISTER, .value = 0 }, { .size = 8, .is_signed = true } },
		{ "i", { .code = KYMO_FORM_REGISTER, .value = 3 }, { .size = 4, .is_signed = true } },
	};

	if (find_known(known, kymo_countof(known), name, size, ret))
		return NULL;
	return kymo_error_at(text, name, "there is no %.*s", (int)size, name);
}

static const struct kymo_expr_names names = { .find = find };

static void values_become_of_the_type_that_is_written(void **state)
{
	becomes("*(int *)a = 5", "  =: int\n"
				 "    *: int\n"
				 "      cast: int *\n"
				 "        a: long\n"
				 "    5: int\n"
				 "   0  register 0\n"
				 "   1  value 5\n"
				 "   2  store 32\n");
	becomes("((u8 *)a)[2] = i * 2", "  =: unsigned char\n"
					"    []: unsigned char\n"
					"      cast: unsigned char *\n"
					"        a: long\n"
					"      2: int\n"
					"    *: int\n"
					"      i: int\n"
					"      2: int\n"
					"   0  register 0\n"
					"   1  value 2\n"
					"   2  add\n"
					"   3  register 3\n"
					"   4  extend s32\n"
					"   5  value 2\n"
					"   6  multiply\n"
					"   7  extend s32\n"
					"   8  extend u8\n"
					"   9  store 8\n");
	becomes("*(bool *)a = i", "  =: bool\n"
				  "    *: bool\n"
				  "      cast: bool *\n"
				  "        a: long\n"
				  "    i: int\n"
				  "   0  register 0\n"
				  "   1  register 3\n"
				  "   2  extend s32\n"
				  "   3  truth\n"
				  "   4  store 8\n");
	becomes("**(long **)a = *(long *)a == 3", "  =: long\n"
						  "    *: long\n"
						  "      *: long *\n"
						  "        cast: long **\n"
						  "          a: long\n"
						  "    ==: int\n"
						  "      *: long\n"
						  "        cast: long *\n"
						  "          a: long\n"
						  "      3: int\n"
						  "   0  register 0\n"
						  "   1  load 64\n"
						  "   2  register 0\n"
						  "   3  load 64\n"
						  "   4  value 3\n"
						  "   5  equal\n"
						  "   6  store 64\n");
}

static void what_cannot_be_written_is_marked(void **state)
{
	refused("a = 1", "column 1: this is not in memory here, so it is not written; 'kymo list --vars' says where it "
			 "is, and 'set %REGISTER = ...' writes a register\n  a = 1\n  ^");
	refused("3 = 1", "column 1: this is not in memory here, so it is not written; 'kymo list --vars' says where it "
			 "is, and 'set %REGISTER = ...' writes a register\n  3 = 1\n  ^");
	refused("*(int *)a", "column 10: expected '=' and the value, as in c->flags = 1\n  *(int *)a\n           ^");
	refused("*(int *)a == 1",
		"column 15: expected '=' and the value, as in c->flags = 1\n  *(int *)a == 1\n                ^");
	refused("*(int *)a =", "column 12: expected a value, such as arg0, %di or 42\n  *(int *)a =\n             ^");
	refused("*(int *)a += 1",
		"column 11: nothing can be changed; write == to compare\n  *(int *)a += 1\n            ^");
	refused("*(int *)a = i = 1",
		"column 15: nothing can be changed; write == to compare\n  *(int *)a = i = 1\n                ^");
	refused("(*(int *)a = 1)",
		"column 12: nothing can be changed; write == to compare\n  (*(int *)a = 1)\n             ^");
	refused("*(int *)a = str(a)", "column 13: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
				      "  *(int *)a = str(a)\n              ^");
	refused("*(void **)a = 0.5", "column 13: '=' is for numbers, and this has a pointer; convert it: (long)p\n"
				     "  *(void **)a = 0.5\n              ^");
	refused("*(void *)a = 1",
		"column 1: this has no value: its type is void; convert the pointer, as in *(long *)p\n"
		"  *(void *)a = 1\n  ^");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_become_of_the_type_that_is_written),
		cmocka_unit_test(what_cannot_be_written_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
