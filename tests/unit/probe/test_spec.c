#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "probe/spec.h"

static struct kymo_spec parse(const char *text)
{
	struct kymo_spec spec = { 0 };
	struct kymo_error *error = kymo_spec_parse(text, &spec);

	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_string_equal(spec.text, text);
	return spec;
}

#define spec_of(name, text) kymo_cleanup(kymo_spec_deinit) struct kymo_spec name = parse(text)

static void refused(const char *text, const char *message)
{
	struct kymo_spec spec, before;
	struct kymo_error *error;

	memset(&spec, 0x5a, sizeof(spec));
	before = spec;
	error = kymo_spec_parse(text, &spec);
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_USAGE);
	assert_string_equal(error->message, message);
	assert_memory_equal(&spec, &before, sizeof(spec));
	kymo_error_destroy(error);
}

static void assert_arg(const struct kymo_spec *spec, size_t i, const char *name, enum kymo_fetch_kind kind,
		       int64_t value, enum kymo_type type)
{
	assert_true(i < spec->n_args);
	assert_string_equal(spec->args[i].name, name);
	assert_int_equal(spec->args[i].fetch.kind, kind);
	assert_int_equal(spec->args[i].fetch.value, value);
	assert_string_equal(kymo_type_name(spec->args[i].fetch.type), kymo_type_name(type));
}

static int register_number(const char *name)
{
	enum kymo_type type;
	int number = kymo_register_parse(name, strlen(name), &type);

	assert_true(number >= 0);
	return number;
}

static void a_function_is_named_by_file_and_symbol(void **state)
{
	spec_of(spec, "libc:malloc");

	assert_string_equal(spec.file, "libc");
	assert_string_equal(spec.symbol, "malloc");
	assert_int_equal(spec.offset, 0);
	assert_int_equal(spec.n_args, 0);
	assert_null(spec.group);
	assert_null(spec.event);
	assert_false(spec.is_return);
}

static void an_offset_follows_a_symbol(void **state)
{
	spec_of(hex, "./app:parse+0x12");
	spec_of(decimal, "./app:parse-7");

	assert_string_equal(hex.symbol, "parse");
	assert_int_equal(hex.offset, 0x12);
	assert_string_equal(decimal.symbol, "parse");
	assert_int_equal(decimal.offset, -7);
}

static void a_lone_number_is_an_offset_in_the_file(void **state)
{
	spec_of(hex, "/bin/bash:0x4245c0");
	spec_of(octal, "app:010");
	spec_of(most, "app:0x7fffffffffffffff");

	assert_null(hex.symbol);
	assert_int_equal(hex.offset, 0x4245c0);
	assert_int_equal(octal.offset, 8);
	assert_true(most.offset == INT64_MAX);
}

static void a_glob_is_a_symbol_and_its_sets_hold_dashes(void **state)
{
	spec_of(star, "libc:mem*");
	spec_of(set, "libc:mem[a-z+]?y");

	assert_string_equal(star.symbol, "mem*");
	assert_string_equal(set.symbol, "mem[a-z+]?y");
}

static void symbols_keep_versions_dots_and_dashes(void **state)
{
	spec_of(version, "libc:memcpy@GLIBC_2.14");
	spec_of(clone, "app:fn.constprop.0+4");
	spec_of(go, "app:main.run.func1-fm");

	assert_string_equal(version.symbol, "memcpy@GLIBC_2.14");
	assert_string_equal(clone.symbol, "fn.constprop.0");
	assert_int_equal(clone.offset, 4);
	assert_string_equal(go.symbol, "main.run.func1-fm");
}

static void backslashes_quote_blanks_colons_and_signs(void **state)
{
	spec_of(path, "/my\\ dir/a\\:b:fn a=%di");
	spec_of(plus, "app:operator\\+1");

	assert_string_equal(path.file, "/my dir/a:b");
	assert_string_equal(path.symbol, "fn");
	assert_int_equal(path.n_args, 1);
	assert_string_equal(plus.symbol, "operator+1");
}

static void the_file_runs_to_the_last_colon(void **state)
{
	spec_of(spec, "/tmp/a:b/app:fn");

	assert_string_equal(spec.file, "/tmp/a:b/app");
	assert_string_equal(spec.symbol, "fn");
}

static void the_kernels_prefix_names_group_and_event(void **state)
{
	spec_of(both, "p:mine/alloc libc:malloc");
	spec_of(event, "p:alloc libc:malloc");
	spec_of(bare, "p libc:malloc");

	assert_string_equal(both.group, "mine");
	assert_string_equal(both.event, "alloc");
	assert_null(event.group);
	assert_string_equal(event.event, "alloc");
	assert_null(bare.event);
	assert_string_equal(bare.file, "libc");
}

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

static void immediates_reach_both_ends_of_64_bits(void **state)
{
	spec_of(spec, "a:f \\-9223372036854775808 \\0xffffffffffffffff:x64");

	assert_true(spec.args[0].fetch.value == INT64_MIN);
	assert_true(spec.args[1].fetch.value == -1);
}

static void what_is_no_location_is_told_so(void **state)
{
	refused("", "column 1: expected FILE:FUNCTION, such as libc:malloc\n"
		    "  \n"
		    "  ^");
	refused("malloc", "column 7: expected ':' and a function after the file, such as libc:malloc\n"
			  "  malloc\n"
			  "        ^");
	refused(":malloc", "column 1: expected a program or library before ':', such as libc:malloc\n"
			   "  :malloc\n"
			   "  ^");
	refused("libc: size=%di",
		"column 6: expected a function, a glob or a file offset, such as malloc, 'mem*' or 0x1234\n"
		"  libc: size=%di\n"
		"       ^");
	refused("app:Foo::bar",
		"column 8: C++ functions are named as the file has them (_ZN3foo3barEv); 'kymo list FILE' shows the "
		"names, and globs such as '*foo*bar*' work\n"
		"  app:Foo::bar\n"
		"         ^");
}

static void a_bad_offset_is_marked(void **state)
{
	refused("libc:malloc+x", "column 13: expected a number after '+', such as +0x12\n"
				 "  libc:malloc+x\n"
				 "              ^");
	refused("libc:malloc+12x", "column 15: '12x' is not a number; write 18 or 0x12\n"
				   "  libc:malloc+12x\n"
				   "                ^");
	refused("libc:0x12z", "column 10: '0x12z' is not a number; write 18 or 0x12\n"
			      "  libc:0x12z\n"
			      "           ^");
	refused("libc:+5", "column 6: expected a function before '+'; a file offset is written without a sign\n"
			   "  libc:+5\n"
			   "       ^");
	refused("libc:mem*+5", "column 10: an offset goes with the name of one function, not with a glob\n"
			       "  libc:mem*+5\n"
			       "           ^");
	refused("libc:18446744073709551616", "column 6: the offset does not fit in 64 bits\n"
					     "  libc:18446744073709551616\n"
					     "       ^");
	refused("libc:f+9223372036854775808", "column 8: the offset does not fit in 64 bits\n"
					      "  libc:f+9223372036854775808\n"
					      "         ^");
	refused("libc:0x10(0x20)", "column 10: reference counters are not supported yet; leave '(...)' out\n"
				   "  libc:0x10(0x20)\n"
				   "           ^");
}

static void a_bad_prefix_is_marked(void **state)
{
	refused("p:malloc",
		"column 9: expected FILE:FUNCTION after 'p:malloc'; a program called p is written ./p:FUNCTION\n"
		"  p:malloc\n"
		"          ^");
	refused("p:malloc n=%di:u32",
		"column 10: expected FILE:FUNCTION after 'p:malloc'; a program called p is written "
		"./p:malloc\n"
		"  p:malloc n=%di:u32\n"
		"           ^");
	refused("p: libc:malloc", "column 3: expected the name of the event\n"
				  "  p: libc:malloc\n"
				  "    ^");
	refused("p:g/ libc:malloc", "column 5: expected the name of the event\n"
				    "  p:g/ libc:malloc\n"
				    "      ^");
	refused("p:a-b libc:malloc",
		"column 4: the name of the event has letters, digits and '_' only, no digit first\n"
		"  p:a-b libc:malloc\n"
		"     ^");
	refused("p:1/b libc:malloc",
		"column 3: the name of the group has letters, digits and '_' only, no digit first\n"
		"  p:1/b libc:malloc\n"
		"    ^");
}

static void return_probes_are_refused_with_an_alternative(void **state)
{
	refused("r:back libc:malloc",
		"column 1: return probes are not supported yet; write 'p' and record the function's entry\n"
		"  r:back libc:malloc\n"
		"  ^");
	refused("libc:malloc%return",
		"column 12: return probes are not supported yet; leave '%return' out to record the function's "
		"entry\n"
		"  libc:malloc%return\n"
		"             ^");
	refused("libc:malloc ret=$retval",
		"column 17: return values are not supported yet; write an argument of the call, such as "
		"$arg1\n"
		"  libc:malloc ret=$retval\n"
		"                  ^");
}

static void memory_is_refused_with_an_alternative(void **state)
{
	refused("libc:open path=+0(%di):string",
		"column 16: memory behind a pointer is not supported yet; write %di to record the "
		"pointer\n"
		"  libc:open path=+0(%di):string\n"
		"                 ^");
	refused("libc:open -u8(+8($arg2))",
		"column 11: memory behind a pointer is not supported yet; write $arg2 to record the "
		"pointer\n"
		"  libc:open -u8(+8($arg2))\n"
		"            ^");
	refused("libc:open +8",
		"column 11: memory behind a pointer is not supported yet; write a register or an argument, such as %di "
		"or $arg1\n"
		"  libc:open +8\n"
		"            ^");
	refused("libc:open v=@0x1234",
		"column 13: memory at a fixed address is not supported yet; write a register or an argument, "
		"such as %di or $arg1\n"
		"  libc:open v=@0x1234\n"
		"              ^");
	refused("libc:open v=@+0x1234",
		"column 13: memory at a file offset is not supported yet; write a register or an argument, "
		"such as %di or $arg1\n"
		"  libc:open v=@+0x1234\n"
		"              ^");
}

static void variables_that_are_not_there_are_named(void **state)
{
	refused("libc:f $comm",
		"column 8: '$comm' is not supported yet; leave it out, each record has its thread's id\n"
		"  libc:f $comm\n"
		"         ^");
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
	refused("libc:malloc size",
		"column 13: variables by name ('size') are not supported yet; write %REGISTER, $argN, $stackN or "
		"\\NUMBER\n"
		"  libc:malloc size\n"
		"              ^");
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

static void types_that_are_not_there_are_named(void **state)
{
	refused("libc:f %di:u7", "column 12: no type 'u7'; write u8 u16 u32 u64, s8 s16 s32 s64 or x8 x16 x32 x64\n"
				 "  libc:f %di:u7\n"
				 "             ^");
	refused("libc:f %di:", "column 12: expected a type after ':', such as u32, s64 or x8\n"
			       "  libc:f %di:\n"
			       "             ^");
	refused("libc:f %di:string", "column 12: strings are not supported yet; write x64 to record the pointer\n"
				     "  libc:f %di:string\n"
				     "             ^");
	refused("libc:f %di:ustring", "column 12: strings are not supported yet; write x64 to record the pointer\n"
				      "  libc:f %di:ustring\n"
				      "             ^");
	refused("libc:f %di:symbol", "column 12: symbol names are not supported yet; write x64 to record the address\n"
				     "  libc:f %di:symbol\n"
				     "             ^");
	refused("libc:f %di:char", "column 12: characters are not supported yet; write u8 to record the code\n"
				   "  libc:f %di:char\n"
				   "             ^");
	refused("libc:f %di:b4@8/32",
		"column 12: bit fields are not supported yet; write x32 to record the whole word\n"
		"  libc:f %di:b4@8/32\n"
		"             ^");
	refused("libc:f %di:u32[4]", "column 15: arrays are not supported yet; leave '[4]' out to record one value\n"
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
	refused("libc:f \\\"hi\"", "column 9: text is not supported yet; write a number, such as \\42\n"
				   "  libc:f \\\"hi\"\n"
				   "          ^");
}

static void names_of_arguments_are_checked(void **state)
{
	refused("libc:f a=%di a=%si", "column 14: another argument is called 'a' already\n"
				      "  libc:f a=%di a=%si\n"
				      "               ^");
	refused("libc:f arg2=%di %si",
		"column 17: this argument would be called 'arg2' as another one is; name it: NAME=...\n"
		"  libc:f arg2=%di %si\n"
		"                  ^");
	refused("libc:f a.b=%di", "column 9: the name of an argument has letters, digits and '_' only, no digit first\n"
				  "  libc:f a.b=%di\n"
				  "          ^");
	refused("libc:f =%di", "column 8: the name of an argument has letters, digits and '_' only, no digit first\n"
			       "  libc:f =%di\n"
			       "         ^");
}

static void the_ninth_argument_is_refused(void **state)
{
	refused("a:f %di %di %di %di %di %di %di %di %si", "column 37: a probe records at most 8 arguments\n"
							   "  a:f %di %di %di %di %di %di %di %di %si\n"
							   "                                      ^");
}

static void columns_count_characters_and_control_bytes_are_not_shown(void **state)
{
	refused("lib\xc3\xa4\xc3\xb6:f %dj", "column 9: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …\n"
					     "  lib\xc3\xa4\xc3\xb6:f %dj\n"
					     "          ^");
	refused("a:\x1b[1m\t%dj", "column 8: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …\n"
				  "  a:?[1m %dj\n"
				  "         ^");
}

static void a_text_without_end_is_refused(void **state)
{
	char text[5000];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	refused(text, "a probe is written in at most 4096 characters, this one has 4999");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_named_by_file_and_symbol),
		cmocka_unit_test(an_offset_follows_a_symbol),
		cmocka_unit_test(a_lone_number_is_an_offset_in_the_file),
		cmocka_unit_test(a_glob_is_a_symbol_and_its_sets_hold_dashes),
		cmocka_unit_test(symbols_keep_versions_dots_and_dashes),
		cmocka_unit_test(backslashes_quote_blanks_colons_and_signs),
		cmocka_unit_test(the_file_runs_to_the_last_colon),
		cmocka_unit_test(the_kernels_prefix_names_group_and_event),
		cmocka_unit_test(every_fetch_is_read),
		cmocka_unit_test(names_and_types_are_given),
		cmocka_unit_test(immediates_reach_both_ends_of_64_bits),
		cmocka_unit_test(what_is_no_location_is_told_so),
		cmocka_unit_test(a_bad_offset_is_marked),
		cmocka_unit_test(a_bad_prefix_is_marked),
		cmocka_unit_test(return_probes_are_refused_with_an_alternative),
		cmocka_unit_test(memory_is_refused_with_an_alternative),
		cmocka_unit_test(variables_that_are_not_there_are_named),
		cmocka_unit_test(an_unknown_register_is_marked),
		cmocka_unit_test(types_that_are_not_there_are_named),
		cmocka_unit_test(a_bad_immediate_is_marked),
		cmocka_unit_test(names_of_arguments_are_checked),
		cmocka_unit_test(the_ninth_argument_is_refused),
		cmocka_unit_test(columns_count_characters_and_control_bytes_are_not_shown),
		cmocka_unit_test(a_text_without_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
