#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "specs.h"

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

static void names_of_go_are_no_globs(void **state)
{
	spec_of(method, "app:main.(*T).String+0x10");
	spec_of(generic, "app:main.Map[...]-1");
	spec_of(package, "app:example.org/go\\-2fa.Run+1");

	assert_string_equal(method.symbol, "main.(*T).String");
	assert_int_equal(method.offset, 0x10);
	assert_string_equal(generic.symbol, "main.Map[...]");
	assert_int_equal(generic.offset, -1);
	assert_string_equal(package.symbol, "example.org/go-2fa.Run");
	assert_int_equal(package.offset, 1);
	refused("app:main.(*).x+5", "column 15: an offset requires the name of one function, not a glob\n"
				    "  app:main.(*).x+5\n"
				    "                ^");
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
	refused("Foo::bar", "column 1: expected the file before the function, such as ./app:shop::Cart::add; '::' is "
			    "part of a name\n"
			    "  Foo::bar\n"
			    "  ^");
}

static void names_of_cxx_and_rust_are_taken_whole(void **state)
{
	static const struct {
		const char *text, *file, *symbol;
		int64_t offset;
		bool is_return, every_instruction;
		size_t n_args;
	} specs[] = {
		{ .text = "./app:shop::Cart::add", .file = "./app", .symbol = "shop::Cart::add" },
		{ .text = "./app:shop::Cart::add(int, char const*)+0x12 a=%di",
		  .file = "./app",
		  .symbol = "shop::Cart::add(int, char const*)",
		  .offset = 0x12,
		  .n_args = 1 },
		{ .text = "app:Cart::total() const%return $retval",
		  .file = "app",
		  .symbol = "Cart::total() const",
		  .is_return = true,
		  .n_args = 1 },
		{ .text = "app:shop::*", .file = "app", .symbol = "shop::*" },
		{ .text = "app:shop::Cart::*:*", .file = "app", .symbol = "shop::Cart::*", .every_instruction = true },
		{ .text = "app:shop::Cart::add:*",
		  .file = "app",
		  .symbol = "shop::Cart::add",
		  .every_instruction = true },
		{ .text = "/tmp/a:b/app:x::f", .file = "/tmp/a:b/app", .symbol = "x::f" },
		{ .text = "/tmp/a::b:f", .file = "/tmp/a::b", .symbol = "f" },
		{ .text = "app:::f", .file = "app", .symbol = "::f" },
		{ .text = "app:V::operator+", .file = "app", .symbol = "V::operator+" },
		{ .text = "app:V::operator-+4", .file = "app", .symbol = "V::operator-", .offset = 4 },
		{ .text = "app:V::operator->*(int)", .file = "app", .symbol = "V::operator->*(int)" },
		{ .text = "app:operator new a=%di", .file = "app", .symbol = "operator new", .n_args = 1 },
		{ .text = "app:operator new[](unsigned long) %di",
		  .file = "app",
		  .symbol = "operator new[](unsigned long)",
		  .n_args = 1 },
		{ .text = "app:V::operator unsigned long() const x=%di",
		  .file = "app",
		  .symbol = "V::operator unsigned long() const",
		  .n_args = 1 },
		{ .text = "app:std::map<int, std::vector<int> >::find %si",
		  .file = "app",
		  .symbol = "std::map<int, std::vector<int> >::find",
		  .n_args = 1 },
		{ .text = "app:f[abi:cxx11](int)", .file = "app", .symbol = "f[abi:cxx11](int)" },
		{ .text = "app:(anonymous namespace)::f %di",
		  .file = "app",
		  .symbol = "(anonymous namespace)::f",
		  .n_args = 1 },
		{ .text = "app:<a::T as core::fmt::Debug>::fmt %di",
		  .file = "app",
		  .symbol = "<a::T as core::fmt::Debug>::fmt",
		  .n_args = 1 },
		{ .text = "app:a::main::{closure#0}", .file = "app", .symbol = "a::main::{closure#0}" },
		{ .text = "r:ev app:shop::Cart::add(int)",
		  .file = "app",
		  .symbol = "shop::Cart::add(int)",
		  .is_return = true },
		{ .text = "app:f(int) [clone .cold] %di",
		  .file = "app",
		  .symbol = "f(int) [clone .cold]",
		  .n_args = 1 },
		{ .text = "app:f(int x=%di", .file = "app", .symbol = "f(int", .n_args = 1 },
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct kymo_spec spec;
		struct kymo_error *error = kymo_spec_parse(specs[i].text, &spec);

		if (error)
			fail_msg("%s", error->message);
		assert_string_equal(spec.file, specs[i].file);
		assert_string_equal(spec.symbol, specs[i].symbol);
		assert_int_equal(spec.offset, specs[i].offset);
		assert_int_equal(spec.is_return, specs[i].is_return);
		assert_int_equal(spec.every_instruction, specs[i].every_instruction);
		assert_int_equal(spec.n_args, specs[i].n_args);
		kymo_spec_deinit(&spec);
	}
	refused("app:shop::Cart::add(int, long) x=%dj",
		"column 34: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …\n"
		"  app:shop::Cart::add(int, long) x=%dj\n"
		"                                   ^");
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
	refused("libc:mem*+5", "column 10: an offset requires the name of one function, not a glob\n"
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

static void a_return_probe_is_written_in_three_ways(void **state)
{
	struct kymo_spec option = { 0 }, both = { 0 };

	spec_of(prefix, "r:mine/back libc:malloc ptr=$retval");
	spec_of(suffix, "libc:mem*%return $retval:s32");
	spec_of(bare, "r /bin/bash:0x4245c0 $retval $stack0 %sp \\1");
	spec_of(entry, "p libc:malloc");

	assert_true(prefix.is_return);
	assert_string_equal(prefix.group, "mine");
	assert_string_equal(prefix.event, "back");
	assert_string_equal(prefix.symbol, "malloc");
	assert_arg(&prefix, 0, "ptr", KYMO_FETCH_RETVAL, 0, KYMO_TYPE_X64);
	assert_true(suffix.is_return);
	assert_string_equal(suffix.symbol, "mem*");
	assert_arg(&suffix, 0, "arg1", KYMO_FETCH_RETVAL, 0, KYMO_TYPE_S32);
	assert_true(bare.is_return);
	assert_null(bare.symbol);
	assert_int_equal(bare.n_args, 4);
	assert_false(entry.is_return);

	assert_null(kymo_spec_parse_return("libc:malloc ptr=$retval", &option));
	assert_true(option.is_return);
	assert_string_equal(option.text, "libc:malloc ptr=$retval");
	assert_null(kymo_spec_parse_return("p:back libc:malloc%return", &both));
	assert_true(both.is_return);
	assert_string_equal(both.event, "back");
	assert_string_equal(both.symbol, "malloc");
	kymo_spec_deinit(&option);
	kymo_spec_deinit(&both);
}

static void a_return_probe_is_for_a_whole_function(void **state)
{
	struct kymo_spec spec;
	struct kymo_error *error;

	spec_of(none, "r libc:malloc+0");

	assert_int_equal(none.offset, 0);
	refused("r libc:malloc+0x12 $retval", "column 14: a return probe is for a whole function; leave the offset "
					      "out, or record this location with -p\n"
					      "  r libc:malloc+0x12 $retval\n"
					      "               ^");
	refused("libc:malloc-1%return", "column 12: a return probe is for a whole function; leave the offset out, or "
					"record this location with -p\n"
					"  libc:malloc-1%return\n"
					"             ^");
	error = kymo_spec_parse_return("libc:malloc+4", &spec);
	assert_non_null(error);
	assert_string_equal(error->message,
			    "column 12: a return probe is for a whole function; leave the offset out, or record this "
			    "location with -p\n"
			    "  libc:malloc+4\n"
			    "             ^");
	kymo_error_destroy(error);
	refused("r libc:malloc:*", "column 14: a return probe is for a whole function; leave ':*' out, or record each "
				   "instruction with -p\n"
				   "  r libc:malloc:*\n"
				   "               ^");
	refused("libc:malloc:*%return", "column 12: a return probe is for a whole function; leave ':*' out, or record "
					"each instruction with -p\n"
					"  libc:malloc:*%return\n"
					"             ^");
	refused("libc:malloc%return:*", "column 12: a return probe is for a whole function; leave ':*' out, or record "
					"each instruction with -p\n"
					"  libc:malloc%return:*\n"
					"             ^");
	refused("r: libc:malloc", "column 3: expected the name of the event\n"
				  "  r: libc:malloc\n"
				  "    ^");
	refused("r:malloc",
		"column 9: expected FILE:FUNCTION after 'r:malloc'; a program called r is written ./r:FUNCTION\n"
		"  r:malloc\n"
		"          ^");
}

static void each_instruction_of_a_function_is_meant_by_a_star_behind_it(void **state)
{
	spec_of(one, "libc:malloc:* %di");
	spec_of(glob, "p:all ./app:parse_*:*");
	spec_of(quoted, "app:a\\:b:*");
	spec_of(all, "libc:*");
	spec_of(colon, "/tmp/a:b/app:*");
	spec_of(library, "/tmp/a:b/libx.so.1:*");
	spec_of(go, "app:example.org/x.sort:*");

	assert_true(one.every_instruction);
	assert_string_equal(one.file, "libc");
	assert_string_equal(one.symbol, "malloc");
	assert_int_equal(one.n_args, 1);
	assert_true(glob.every_instruction);
	assert_string_equal(glob.symbol, "parse_*");
	assert_true(quoted.every_instruction);
	assert_string_equal(quoted.symbol, "a:b");
	assert_false(all.every_instruction);
	assert_string_equal(all.symbol, "*");
	assert_false(colon.every_instruction);
	assert_string_equal(colon.file, "/tmp/a:b/app");
	assert_string_equal(colon.symbol, "*");
	assert_false(library.every_instruction);
	assert_string_equal(library.file, "/tmp/a:b/libx.so.1");
	assert_true(go.every_instruction);
	assert_string_equal(go.symbol, "example.org/x.sort");
}

static void what_is_no_function_has_no_star_behind_it(void **state)
{
	refused("libc:malloc+4:*", "column 12: ':*' is each instruction of a function; leave the offset or ':*' out\n"
				   "  libc:malloc+4:*\n"
				   "             ^");
	refused("libc:0x1234:*", "column 6: ':*' requires the name of a function, or a glob\n"
				 "  libc:0x1234:*\n"
				 "       ^");
	refused("libc:malloc:* $arg1",
		"column 15: '$arg1' would be right at the first instruction only; write a register, such as %di\n"
		"  libc:malloc:* $arg1\n"
		"                ^");
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

static void an_address_is_a_number_without_a_file(void **state)
{
	spec_of(bare, "0x7f3c12345678 n=%di");
	spec_of(named, "p:jit/hot 0X10");
	spec_of(file, "0x7f3c:malloc");

	assert_true(bare.address == 0x7f3c12345678);
	assert_null(bare.file);
	assert_null(bare.symbol);
	assert_int_equal(bare.offset, 0);
	assert_int_equal(bare.n_args, 1);
	assert_true(named.address == 0x10);
	assert_string_equal(named.event, "hot");
	assert_true(file.address == 0);
	assert_string_equal(file.file, "0x7f3c");
}

static void what_is_no_address_is_told_so(void **state)
{
	refused("0x7f3c+4", "column 7: '0x7f3c+4' is not an address; write 0x7f3c12345678\n"
			    "  0x7f3c+4\n"
			    "        ^");
	refused("0x", "column 2: '0x' is not an address; write 0x7f3c12345678\n"
		      "  0x\n"
		      "   ^");
	refused("0x0", "column 1: no program has code at this address\n"
		       "  0x0\n"
		       "  ^");
	refused("0x800000000000", "column 1: no program has code at this address\n"
				  "  0x800000000000\n"
				  "  ^");
	refused("0x11111111111111111", "column 1: no program has code at this address\n"
				       "  0x11111111111111111\n"
				       "  ^");
	refused("r 0x7f3c",
		"column 3: a return probe is for a whole function, and nothing says where one at an address ends; "
		"record the instructions by which it is left with -p\n"
		"  r 0x7f3c\n"
		"    ^");
	refused("1234", "column 1: a process is given by --pid 1234; a probe is written libc:malloc\n"
			"  1234\n"
			"  ^");
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
		cmocka_unit_test(names_of_go_are_no_globs),
		cmocka_unit_test(symbols_keep_versions_dots_and_dashes),
		cmocka_unit_test(backslashes_quote_blanks_colons_and_signs),
		cmocka_unit_test(the_file_runs_to_the_last_colon),
		cmocka_unit_test(the_kernels_prefix_names_group_and_event),
		cmocka_unit_test(what_is_no_location_is_told_so),
		cmocka_unit_test(names_of_cxx_and_rust_are_taken_whole),
		cmocka_unit_test(a_bad_offset_is_marked),
		cmocka_unit_test(a_bad_prefix_is_marked),
		cmocka_unit_test(a_return_probe_is_written_in_three_ways),
		cmocka_unit_test(a_return_probe_is_for_a_whole_function),
		cmocka_unit_test(each_instruction_of_a_function_is_meant_by_a_star_behind_it),
		cmocka_unit_test(what_is_no_function_has_no_star_behind_it),
		cmocka_unit_test(columns_count_characters_and_control_bytes_are_not_shown),
		cmocka_unit_test(an_address_is_a_number_without_a_file),
		cmocka_unit_test(what_is_no_address_is_told_so),
		cmocka_unit_test(a_text_without_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
