#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "specs.h"

static void every_fetch_is_read(void **state)
{
	spec_of(spec, "libc:f %di %edi $arg1 $arg261 $stack $stack255 \\42 \\-1");

	assert_int_equal(spec.n_args, 8);
	assert_arg(&spec, 0, "arg1", KYMO_FETCH_REGISTER, register_number("di"), KYMO_TYPE_X64);
	assert_arg(&spec, 1, "arg2", KYMO_FETCH_REGISTER, register_number("edi"), KYMO_TYPE_X32);
	assert_arg(&spec, 2, "arg3", KYMO_FETCH_ARGUMENT, 1, KYMO_TYPE_X64);
	assert_arg(&spec, 3, "arg4", KYMO_FETCH_ARGUMENT, 261, KYMO_TYPE_X64);
	assert_arg(&spec, 4, "arg5", KYMO_FETCH_STACK_POINTER, 0, KYMO_TYPE_X64);
	assert_arg(&spec, 5, "arg6", KYMO_FETCH_STACK, 255, KYMO_TYPE_X64);
	assert_arg(&spec, 6, "arg7", KYMO_FETCH_IMMEDIATE, 42, KYMO_TYPE_S64);
	assert_arg(&spec, 7, "arg8", KYMO_FETCH_IMMEDIATE, -1, KYMO_TYPE_S64);
}

static void names_and_types_are_given(void **state)
{
	spec_of(spec, "libc:read  fd=%di:s32\tn=%dx:u64 _0=\\0xff:s8");

	assert_int_equal(spec.n_args, 3);
	assert_arg(&spec, 0, "fd", KYMO_FETCH_REGISTER, register_number("di"), KYMO_TYPE_S32);
	assert_arg(&spec, 1, "n", KYMO_FETCH_REGISTER, register_number("dx"), KYMO_TYPE_U64);
	assert_arg(&spec, 2, "_0", KYMO_FETCH_IMMEDIATE, 255, KYMO_TYPE_S8);
}

static void arrays_and_characters_are_read(void **state)
{
	static const struct {
		uint16_t limit;
		int array_of; /* -1: nothing but bytes */
		bool is_character;
	} expected[] = {
		{ 16, KYMO_TYPE_U32, false },
		{ 512, KYMO_TYPE_S64, false },
		{ 8, KYMO_TYPE_S8, true },
		{ 4, KYMO_TYPE_U8, false },
		{ 4, -1, false },
		{ 2, KYMO_TYPE_X16, false },
	};
	spec_of(spec,
		"libc:f +0(%di):u32[4] +0(%di):s64[64] +0(%di):char[8] +0(%di):u8[4] +0(%di):x8[4] +0(%di):x16[1] "
		"%si:char +8(%di):char");

	assert_int_equal(spec.n_args, 8);
	for (size_t i = 0; i < 6; i++) {
		const struct kymo_spec_arg *arg = &spec.args[i];

		assert_int_equal(arg->fetch.type, KYMO_TYPE_BYTES);
		assert_int_equal(arg->fetch.limit, expected[i].limit);
		assert_int_equal(arg->fetch.array_of, expected[i].array_of + 1);
		assert_true(!arg->naming == !expected[i].is_character);
	}
	for (size_t i = 6; i < 8; i++) {
		assert_int_equal(spec.args[i].fetch.type, KYMO_TYPE_S8);
		assert_true(spec.args[i].naming && spec.args[i].naming->is_character);
	}
}

static void texts_have_a_length_that_is_computed(void **state)
{
	static const char *const expected[] = { "arg1", "buf", "value3", "value4", "bytes", "value6", "value7" };
	spec_of(spec, "libc:f str(arg1, arg2) buf=buf(arg1, arg2) (str(arg1, arg2)) str(arg0 + 1, arg2 - 1) "
		      "bytes=buf(arg1, (int)arg2) buf(arg1, %dx & 15) (str(arg1, arg2) == \"GET\")");

	assert_int_equal(spec.n_args, 7);
	for (size_t i = 0; i < 7; i++) {
		const struct kymo_fetch *fetch = &spec.args[i].fetch;
		const bool is_number = i == 6, is_text = i == 0 || i == 2 || i == 3;

		assert_string_equal(spec.args[i].name, expected[i]);
		assert_int_equal(fetch->kind, KYMO_FETCH_FORM);
		assert_int_equal(fetch->type, is_number ? KYMO_TYPE_S32 : is_text ? KYMO_TYPE_STRING : KYMO_TYPE_BYTES);
		assert_int_equal(fetch->limit, is_number ? 0 : KYMO_FETCH_LIMIT);
		assert_int_equal(fetch->array_of, 0);
		assert_int_equal(kymo_form_has(fetch->form, KYMO_FORM_WANT, NULL), !is_number);
	}
	refused("libc:f str(arg1, arg2):u8", "column 24: 'str(arg1, arg2)' is text; leave the type out\n  libc:f "
					     "str(arg1, arg2):u8\n                         ^");
	refused("libc:f str(arg0, 4), arg1", "column 20: expected an operator, such as == or &&, or the end\n  libc:f "
					     "str(arg0, 4), arg1\n                     ^");
}

static void immediates_reach_both_ends_of_64_bits(void **state)
{
	spec_of(spec, "a:f \\-9223372036854775808 \\0xffffffffffffffff:x64");

	assert_true(spec.args[0].fetch.value == INT64_MIN);
	assert_true(spec.args[1].fetch.value == -1);
}

static void return_values_are_for_returns_and_arguments_for_entries(void **state)
{
	refused("libc:malloc ret=$retval",
		"column 17: $retval is known at a function's return only; write -r or %return\n"
		"  libc:malloc ret=$retval\n"
		"                  ^");
	refused("libc:malloc:* $retval",
		"column 15: $retval is known at a function's return only; write -r or %return\n"
		"  libc:malloc:* $retval\n"
		"                ^");
	refused("r libc:malloc n=$retval.a",
		"column 17: a member of what the function returns is an expression: write ($retval).a\n"
		"  r libc:malloc n=$retval.a\n"
		"                  ^");
	refused("r libc:malloc n=$arg1",
		"column 17: arguments are gone at the return; entry(arg0) is what the entry had\n"
		"  r libc:malloc n=$arg1\n"
		"                  ^");
	refused("libc:malloc%return $retval:u7",
		"column 28: no type 'u7'; write u8 u16 u32 u64, s8 s16 s32 s64 or x8 x16 x32 x64\n"
		"  libc:malloc%return $retval:u7\n"
		"                             ^");
}

/* The form's operations, one a word: "r7 +8 l8". */
static void assert_form(const struct kymo_spec_arg *arg, enum kymo_type type, const char *expected)
{
	char text[256] = "";
	size_t n = 0;

	assert_int_equal(arg->fetch.kind, KYMO_FETCH_FORM);
	assert_int_equal(arg->fetch.type, type);
	assert_ptr_equal(arg->fetch.form, arg->form);
	for (uint32_t i = 0; i < arg->form->n; i++) {
		static const struct {
			uint8_t code;
			const char *name;
		} names[] = { { KYMO_FORM_REGISTER, "r" }, { KYMO_FORM_VALUE, "v" }, { KYMO_FORM_LOAD, "l" },
			      { KYMO_FORM_STACK, "s" },    { KYMO_FORM_ADD, "+" },   { KYMO_FORM_EXTEND, "x" },
			      { KYMO_FORM_RETVAL, "ret" } };
		const struct kymo_form_op *op = &arg->form->ops[i];
		const char *name = "?";

		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			name = names[k].code == op->code ? names[k].name : name;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", name);
		if (op->code != KYMO_FORM_ADD && op->code != KYMO_FORM_RETVAL)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%lld",
					      op->code == KYMO_FORM_LOAD || op->code == KYMO_FORM_EXTEND
						      ? (long long)op->size
						      : (long long)op->value);
	}
	assert_string_equal(text, expected);
}

static void memory_is_read_at_an_offset(void **state)
{
	spec_of(spec, "libc:open path=+0(%di):string +8(%di):u32 -16(%si):s32 +0(+8(%di)) +u0($arg8):ustring "
		      "+4($stack2):x8[12] @0x4040a0:u16 +1(@16):u8");
	spec_of(from_return, "r libc:getenv +0($retval):string +0(%eax):u8 +0($stack)");

	assert_form(&spec.args[0], KYMO_TYPE_STRING, "r7 v0 +");
	assert_string_equal(spec.args[0].name, "path");
	assert_int_equal(spec.args[0].fetch.limit, KYMO_FETCH_LIMIT);
	assert_form(&spec.args[1], KYMO_TYPE_U32, "r7 v8 + l4");
	assert_form(&spec.args[2], KYMO_TYPE_S32, "r6 v-16 + l4");
	assert_form(&spec.args[3], KYMO_TYPE_X64, "r7 v8 + l8 v0 + l8");
	assert_form(&spec.args[4], KYMO_TYPE_STRING, "s2 v0 +");
	assert_form(&spec.args[5], KYMO_TYPE_BYTES, "s2 v4 +");
	assert_int_equal(spec.args[5].fetch.limit, 12);
	assert_form(&spec.args[6], KYMO_TYPE_U16, "v4210848 l2");
	assert_form(&spec.args[7], KYMO_TYPE_U8, "v16 l8 v1 + l1");
	assert_form(&from_return.args[0], KYMO_TYPE_STRING, "ret v0 +");
	assert_form(&from_return.args[1], KYMO_TYPE_U8, "r0 x4 v0 + l1");
	assert_form(&from_return.args[2], KYMO_TYPE_X64, "r4 v0 + l8");
}

/* Each element is an argument. */
static void arrays_of_texts_and_bit_fields_are_read(void **state)
{
	spec_of(texts, "libc:execve argv=+0(%si):string[2] +8(%di):ustring[1] %cs %orig_ax:s8 +4(\\0x4040a0):u8");
	spec_of(bits, "libc:f flags=+4(%di):b3@4/16[2] a=\\1");

	assert_int_equal(texts.n_args, 6);
	assert_form(&texts.args[0], KYMO_TYPE_STRING, "r6 v0 + l8");
	assert_string_equal(texts.args[0].name, "argv_0");
	assert_form(&texts.args[1], KYMO_TYPE_STRING, "r6 v0 + v8 + l8");
	assert_string_equal(texts.args[1].name, "argv_1");
	assert_int_equal(texts.args[1].fetch.limit, KYMO_FETCH_LIMIT);
	assert_form(&texts.args[2], KYMO_TYPE_STRING, "r7 v8 + l8");
	assert_string_equal(texts.args[2].name, "arg3_0");
	assert_arg(&texts, 3, "arg4", KYMO_FETCH_IMMEDIATE, 0x33, KYMO_TYPE_X64);
	assert_arg(&texts, 4, "arg5", KYMO_FETCH_IMMEDIATE, -1, KYMO_TYPE_S8);
	assert_form(&texts.args[5], KYMO_TYPE_U8, "v4210848 v4 + l1");
	assert_int_equal(bits.n_args, 3);
	assert_form(&bits.args[0], KYMO_TYPE_U16, "r7 v4 + l2 v57 ?0 v61 ?0");
	assert_form(&bits.args[1], KYMO_TYPE_U16, "r7 v4 + v2 + l2 v57 ?0 v61 ?0");
	assert_string_equal(bits.args[1].name, "flags_1");
	assert_string_equal(bits.args[2].name, "a");
}

static void memory_that_is_not_said_well_is_refused(void **state)
{
	refused("libc:open +8", "column 13: expected what the offset is from, in brackets, such as +8(%di)\n"
				"  libc:open +8\n"
				"              ^");
	refused("libc:open +x(%di)",
		"column 12: expected an offset of at most 31 bits and what it is from, such as +8(%di)\n"
		"  libc:open +x(%di)\n"
		"             ^");
	refused("libc:open +0()", "column 14: expected what the offset is from, such as +8(%di)\n"
				  "  libc:open +0()\n"
				  "               ^");
	refused("libc:open +0(42)", "column 14: expected what the offset is from, such as +8(%di) or +0(+8(%di))\n"
				    "  libc:open +0(42)\n"
				    "               ^");
	refused("libc:open +0(%flags)",
		"column 14: '%flags' is no address; write a register, an argument or a word of the stack, such as "
		"+8(%di)\n"
		"  libc:open +0(%flags)\n"
		"               ^");
	refused("libc:open v=@+abc", "column 15: expected an offset in the file after '@+', such as @+0x40a0\n"
				     "  libc:open v=@+abc\n                ^");
	refused("0x1234 v=@+16", "column 10: this location is in no file; write an address, such as @0x4040a0\n"
				 "  0x1234 v=@+16\n           ^");
	refused("libc:open +0(%di):u32[129]",
		"column 19: no array 'u32[129]'; write an integer type or char and how many, such as u32[4], of 512 "
		"bytes at most\n"
		"  libc:open +0(%di):u32[129]\n"
		"                    ^");
	refused("libc:open %si +0(%di):string[8]",
		"column 23: a probe records at most 8 arguments, and each element of this array is one\n"
		"  libc:open %si +0(%di):string[8]\n"
		"                        ^");
	refused("libc:open a_1=%si a=+0(%di):string[2]", "column 21: duplicate argument name 'a_1'\n"
							 "  libc:open a_1=%si a=+0(%di):string[2]\n"
							 "                      ^");
	refused("libc:open +0(%di):string[0]",
		"column 19: no array 'string[0]'; write an integer type or char and how many, such as u32[4], of 512 "
		"bytes at most\n"
		"  libc:open +0(%di):string[0]\n"
		"                    ^");
	refused("libc:open %di:b3@4/32[2]",
		"column 22: an array is in memory; write +0(%di):b3@4/32[2] for the one that it points to\n"
		"  libc:open %di:b3@4/32[2]\n"
		"                       ^");
	refused("libc:f +0(%di):x8[512] +0(%di):x8[512] +0(%di):x8[512]",
		"column 40: the probe would read more than 1100 bytes of memory, which a thread's stack may not hold; "
		"record fewer strings and bytes\n"
		"  libc:f +0(%di):x8[512] +0(%di):x8[512] +0(%di):x8[512]\n"
		"                                         ^");
}

static void variables_that_are_not_there_are_named(void **state)
{
	refused("libc:f $comm:u8", "column 14: '$comm' is text; leave the type out, or write string\n"
				   "  libc:f $comm:u8\n               ^");
	refused("libc:f $arg*", "column 8: '$arg*' is not supported yet; write the arguments one by one: $arg1 $arg2\n"
				"  libc:f $arg*\n"
				"         ^");
	refused("libc:f $foo", "column 8: no '$foo'; write $arg1, $stack (the pointer) or $stack0 (the word)\n"
			       "  libc:f $foo\n"
			       "         ^");
	refused("libc:f $arg0", "column 12: arguments are numbered $arg1 to $arg261\n"
				"  libc:f $arg0\n"
				"             ^");
	refused("libc:f $argx", "column 12: arguments are numbered $arg1 to $arg261\n"
				"  libc:f $argx\n"
				"             ^");
	refused("libc:f $stack256", "column 14: words of the stack are numbered $stack0 to $stack255\n"
				    "  libc:f $stack256\n"
				    "               ^");
	refused("libc:f+4 $arg1",
		"column 10: '$arg1' is known at the first instruction of a function only; write a register, such as "
		"%di\n"
		"  libc:f+4 $arg1\n"
		"           ^");
	refused("libc:mall* size",
		"column 12: variables by name ('size') are known at one location of a file; write arg0, retval, "
		"%REGISTER or $stack0\n"
		"  libc:mall* size\n"
		"             ^");
	refused("libc:malloc n=5", "column 15: a number is written with a backslash before it: \\5\n"
				   "  libc:malloc n=5\n"
				   "                ^");
	refused("libc:malloc n=", "column 15: expected what to record: %REGISTER, $argN, $stack, $stackN or \\NUMBER\n"
				  "  libc:malloc n=\n"
				  "                ^");
}

static void an_unknown_register_is_marked(void **state)
{
	refused("libc:malloc size=%dj", "column 18: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …\n"
					"  libc:malloc size=%dj\n"
					"                   ^");
	refused("libc:malloc %", "column 13: no register '%' on x86-64; write %di, %edi, %al, %r8 …\n"
				 "  libc:malloc %\n"
				 "              ^");
}

static void a_bad_bit_field_is_marked(void **state)
{
	refused("libc:f %di:b4",
		"column 14: expected a bit-field as bBITS@FIRST/OF, such as b3@4/32 for 3 of 32 bits from "
		"bit 4 on\n"
		"  libc:f %di:b4\n"
		"               ^");
	refused("libc:f %di:b4@8/33", "column 12: a bit-field is of 8, 16, 32 or 64 bits\n"
				      "  libc:f %di:b4@8/33\n"
				      "             ^");
	refused("libc:f %di:b4@30/32", "column 12: these bits are not within 32\n"
				       "  libc:f %di:b4@30/32\n"
				       "             ^");
	refused("libc:f %edi:b4@30/64", "column 13: u64 is wider than %edi, which has 32 bits\n"
					"  libc:f %edi:b4@30/64\n"
					"              ^");
	refused("libc:f %flags:b1@6/64", "column 15: '%flags' has no bit-fields; record it whole\n"
					 "  libc:f %flags:b1@6/64\n"
					 "                ^");
	refused("libc:f (arg0):b4@30/64",
		"column 15: a bit-field is of a register or of memory; write the expression with >> and &\n"
		"  libc:f (arg0):b4@30/64\n"
		"                ^");
}

static void types_that_are_not_there_are_named(void **state)
{
	refused("libc:f %di:u7", "column 12: no type 'u7'; write u8 u16 u32 u64, s8 s16 s32 s64 or x8 x16 x32 x64\n"
				 "  libc:f %di:u7\n"
				 "             ^");
	refused("libc:f %di:", "column 12: expected a type after ':', such as u32, s64 or x8\n"
			       "  libc:f %di:\n"
			       "             ^");
	refused("libc:f %di:string",
		"column 12: a string is memory; write +0(%di):string for the one that it points to\n"
		"  libc:f %di:string\n"
		"             ^");
	refused("libc:f %di:ustring",
		"column 12: a string is memory; write +0(%di):ustring for the one that it points to\n"
		"  libc:f %di:ustring\n"
		"             ^");
	refused("libc:f %di:symbol", "column 12: symbol is for addresses in the kernel, which does not take it in a "
				     "program either; write x64\n"
				     "  libc:f %di:symbol\n"
				     "             ^");
	refused("libc:f @stdout", "column 9: symbols after '@' are those of the kernel itself; write the name of the "
				  "variable alone, or an "
				  "address, such as @0x4040a0\n"
				  "  libc:f @stdout\n"
				  "          ^");
	refused("libc:f %di:u32[4]",
		"column 15: an array is in memory; write +0(%di):u32[4] for the one that it points to\n"
		"  libc:f %di:u32[4]\n"
		"                ^");
	refused("libc:f %edi:u64", "column 13: u64 is wider than %edi, which has 32 bits\n"
				   "  libc:f %edi:u64\n"
				   "              ^");
}

static void a_bad_immediate_is_marked(void **state)
{
	refused("libc:f \\x", "column 9: expected a number of at most 64 bits after '\\', such as \\42 or \\0x2a\n"
			      "  libc:f \\x\n"
			      "          ^");
	refused("libc:f \\12x", "column 11: expected a number of at most 64 bits after '\\', such as \\42 or \\0x2a\n"
				"  libc:f \\12x\n"
				"            ^");
	refused("libc:f \\99999999999999999999",
		"column 9: expected a number of at most 64 bits after '\\', such as \\42 or \\0x2a\n"
		"  libc:f \\99999999999999999999\n"
		"          ^");
	refused("libc:f \\-9223372036854775809", "column 10: the number does not fit in 64 bits\n"
						 "  libc:f \\-9223372036854775809\n"
						 "           ^");
	refused("libc:f \\300:u8", "column 9: the number does not fit in u8\n"
				   "  libc:f \\300:u8\n"
				   "          ^");
	refused("libc:f \\\"hello", "column 15: expected '\"' at the end of the text, as in \\\"text\"\n"
				    "  libc:f \\\"hello\n                ^");
}

static void names_of_arguments_are_checked(void **state)
{
	refused("libc:f a=%di a=%si", "column 14: duplicate argument name 'a'\n"
				      "  libc:f a=%di a=%si\n"
				      "               ^");
	refused("libc:f arg2=%di %si",
		"column 17: this argument would be called 'arg2' as another one is; name it: NAME=...\n"
		"  libc:f arg2=%di %si\n"
		"                  ^");
	refused("libc:f a.b=%di", "column 9: the name of an argument has letters, digits and '_' only, no digit first\n"
				  "  libc:f a.b=%di\n"
				  "          ^");
	refused("libc:f x = 9",
		"column 10: there is no name before '='; what is to change the program begins with 'set', as "
		"in: set x = 1\n"
		"  libc:f x = 9\n"
		"           ^");
}

static void the_ninth_argument_is_refused(void **state)
{
	refused("a:f %di %di %di %di %di %di %di %di %si", "column 37: a probe records at most 8 arguments\n"
							   "  a:f %di %di %di %di %di %di %di %di %si\n"
							   "                                      ^");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fetch_is_read),
		cmocka_unit_test(names_and_types_are_given),
		cmocka_unit_test(arrays_and_characters_are_read),
		cmocka_unit_test(texts_have_a_length_that_is_computed),
		cmocka_unit_test(immediates_reach_both_ends_of_64_bits),
		cmocka_unit_test(return_values_are_for_returns_and_arguments_for_entries),
		cmocka_unit_test(memory_is_read_at_an_offset),
		cmocka_unit_test(arrays_of_texts_and_bit_fields_are_read),
		cmocka_unit_test(memory_that_is_not_said_well_is_refused),
		cmocka_unit_test(variables_that_are_not_there_are_named),
		cmocka_unit_test(an_unknown_register_is_marked),
		cmocka_unit_test(a_bad_bit_field_is_marked),
		cmocka_unit_test(types_that_are_not_there_are_named),
		cmocka_unit_test(a_bad_immediate_is_marked),
		cmocka_unit_test(names_of_arguments_are_checked),
		cmocka_unit_test(the_ninth_argument_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
