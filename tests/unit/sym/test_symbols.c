#include "testing.h"
#include "sym/find.h"
#include "sym/glob.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/relocs.h"
#include "sym/sym.h"
#include "sym/symbols.h"

static const char versioned[] =
	"int first(int x) { return x + 1; }\n"
	"int second(int x) { return x + 2; }\n"
	"int lonely(int x) { return x + 3; }\n"
	"int zeta(int x) { return x * 7; }\n"
	"int alpha(int x) __attribute__((alias(\"zeta\")));\n"
	"int public_object = 5;\n"
	"static int implementation(int x) { return x; }\n"
	"static void *choose(void) { return (void *)implementation; }\n"
	"int chosen(int x) __attribute__((ifunc(\"choose\")));\n"
	"__asm__(\".symver first, twice@V1\\n.symver second, twice@@V2\\n.symver lonely, only_old@V1\\n\");\n";

static const char indirect[] = "int visible(int x) { return x; }\n"
			       "static int hidden(int x) { return -x; }\n"
			       "static volatile int which = 1;\n"
			       "static void *choose(void) { return which ? (void *)visible : (void *)hidden; }\n"
			       "int chosen(int x) __attribute__((ifunc(\"choose\")));\n"
			       "int (*const table[])(int) = { hidden };\n"
			       "int (*variable)(int) = hidden;\n"
			       "int call(int x) { return chosen(x) + chosen(2); }\n"
			       "static int inner(int) __attribute__((ifunc(\"choose\")));\n"
			       "int call_inner(int x) { return inner(x) + 1; }\n";

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("versioned.c", versioned);
	write_file("versioned.map", "V1 { global: twice; only_old; first; second; zeta; alpha; chosen; public_object; "
				    "local: *; };\nV2 { } V1;\n");
	run("gcc -O1 -shared -fPIC versioned.c -Wl,--version-script=versioned.map -o versioned.so");
	write_file("indirect.c", indirect);
	run("gcc -O1 -shared -fPIC indirect.c -o indirect.so");
	write_file("one.c", "static __attribute__((noinline)) int same(int x) { return x + 1; } int one(int x) { "
			    "return same(x); }\n");
	write_file("two.c", "static __attribute__((noinline)) int same(int x) { return x * x; } int two(int x) { "
			    "return same(x) + 1; }\n"
			    "int one(int); int main(int c, char **v) { return one(c) + two(c); }\n");
	run("gcc -O1 -fno-inline -fno-ipa-icf one.c two.c -o twins");
	return 0;
}

static size_t count(struct kymo_module *module, const char *pattern)
{
	const struct kymo_symbol **found = NULL;
	size_t n;

	succeeds(kymo_module_find(module, pattern, &found, &n));
	free(found);
	return n;
}

/* The one symbol that the pattern selects. */
static const struct kymo_symbol *find_one(struct kymo_module *module, const char *pattern)
{
	const struct kymo_symbol **found = NULL, *symbol;
	size_t n;

	succeeds(kymo_module_find(module, pattern, &found, &n));
	if (n != 1)
		fail_msg("%s: %zu symbols", pattern, n);
	symbol = found[0];
	free(found);
	return symbol;
}

/* Each function that nm lists is there, under its name and version, and knows what kind it is. */
static void compare_with_nm(const char *name)
{
	struct kymo_module *module = open_named(name);
	char line[4096], symbol[4000], kind;
	unsigned long long vaddr;
	size_t n_theirs = 0;
	FILE *lines = lines_of("nm -D --defined-only '%s'", kymo_module_path(module));

	while (fgets(line, sizeof(line), lines)) {
		const struct kymo_symbol *ours;

		if (sscanf(line, "%llx %c %3999s", &vaddr, &kind, symbol) != 3 || !strchr("TWi", kind))
			continue;
		/* Weak, and data, which nm does not tell from functions. */
		if (!strcmp(symbol, "data_start"))
			continue;
		ours = find_one(module, symbol);
		assert_int_equal(ours->vaddr, vaddr);
		assert_int_equal(ours->is_ifunc, kind == 'i');
		assert_true(ours->is_global);
		assert_true(!strchr(symbol, '@') || ours->version);
		assert_int_equal(ours->is_default, !strchr(symbol, '@') || strstr(symbol, "@@"));
		n_theirs++;
	}
	pclose(lines);
	assert_true(n_theirs > 100);
	kymo_module_close(module);
}

static void functions_are_those_of_nm(void **state)
{
	compare_with_nm("libc");
	compare_with_nm("bash");
	compare_with_nm("/usr/bin/python3");
}

static void each_symbol_is_in_the_file(void **state)
{
	struct kymo_module *module = open_module(in_directory("twins"));
	size_t n, n_theirs = 0;
	const struct kymo_symbol *symbols = kymo_module_symbols(module, &n);
	FILE *lines = lines_of("readelf -sW twins");
	char line[1000], type[32], bind[32], index[32], name[500];
	unsigned long long vaddr, size;

	while (fgets(line, sizeof(line), lines)) {
		bool there = false;

		if (sscanf(line, " %*d: %llx %llu %31s %31s %*s %31s %499s", &vaddr, &size, type, bind, index, name) !=
			    6 ||
		    strcmp(type, "FUNC") || !strcmp(index, "UND"))
			continue;
		n_theirs++;
		for (size_t i = 0; i < n; i++)
			there |= symbols[i].vaddr == vaddr && symbols[i].size == size &&
				 !strcmp(symbols[i].name, name) && symbols[i].is_global == !!strcmp(bind, "LOCAL");
		assert_true(there);
	}
	pclose(lines);
	assert_int_equal(n, n_theirs);
	for (size_t i = 1; i < n; i++)
		assert_true(symbols[i - 1].vaddr <= symbols[i].vaddr);
	kymo_module_close(module);
}

static void plt_stubs_are_no_functions(void **state)
{
	struct kymo_module *module;

	/* A program at a fixed address that takes the address of printf makes its PLT entry the symbol's value. */
	write_file("fixed.c", "int printf(const char *, ...); int (*volatile p)(const char *, ...);\n"
			      "int main(void) { p = printf; return p(\"\"); }\n");
	run("gcc -O1 -no-pie -fno-pie fixed.c -o fixed");
	module = open_module(in_directory("fixed"));
	assert_false(kymo_module_is_pie(module));
	assert_int_equal(count(module, "printf*"), 0);
	assert_int_equal(count(module, "main"), 1);
	kymo_module_close(module);
}

static void a_plain_name_takes_the_default_version(void **state)
{
	struct kymo_module *module = open_module(in_directory("versioned.so"));

	assert_string_equal(find_one(module, "twice")->version, "V2");
	assert_true(find_one(module, "twice")->is_default);
	assert_int_equal(find_one(module, "twice")->vaddr, find_one(module, "second")->vaddr);
	assert_int_equal(find_one(module, "twice@V1")->vaddr, find_one(module, "first")->vaddr);
	assert_false(find_one(module, "twice@V1")->is_default);
	assert_int_equal(find_one(module, "twice@@V2")->vaddr, find_one(module, "second")->vaddr);
	assert_int_equal(count(module, "twice@V3"), 0);
	kymo_module_close(module);
}

static void a_name_that_only_old_programs_know_is_found(void **state)
{
	struct kymo_module *module = open_module(in_directory("versioned.so"));

	assert_string_equal(find_one(module, "only_old")->name, "only_old");
	assert_string_equal(find_one(module, "only_old")->version, "V1");
	kymo_module_close(module);
}

static void two_versions_of_one_address_are_both_found(void **state)
{
	struct kymo_module *module = open_named("libc");
	const struct kymo_symbol *plain = find_one(module, "pthread_create");

	assert_string_equal(plain->version, "GLIBC_2.34");
	assert_int_equal(find_one(module, "pthread_create@GLIBC_2.2.5")->vaddr, plain->vaddr);
	assert_string_not_equal(find_one(module, "memcpy@GLIBC_2.2.5")->version, find_one(module, "memcpy")->version);
	assert_true(find_one(module, "memcpy")->is_ifunc);
	assert_false(find_one(module, "memcpy@GLIBC_2.2.5")->is_ifunc);
	kymo_module_close(module);
}

static void an_ifunc_says_so(void **state)
{
	struct kymo_module *module = open_module(in_directory("versioned.so"));

	assert_true(find_one(module, "chosen")->is_ifunc);
	assert_false(find_one(module, "zeta")->is_ifunc);
	kymo_module_close(module);
}

/* Where the word lies that readelf lists with the relocation `type` and, after it, `what`. */
static uint64_t relocated(const char *type, const char *what)
{
	FILE *lines = lines_of("readelf -rW indirect.so | awk '$3 == \"%s\" && /%s/ { print $1 }'", type, what);
	unsigned long long where;

	assert_int_equal(fscanf(lines, "%llx", &where), 1);
	pclose(lines);
	return where;
}

static void words_that_only_relocation_writes_are_constant(void **state)
{
	struct kymo_module *module = open_module(in_directory("indirect.so"));
	uint64_t vaddr, size, value;

	assert_int_equal(kymo_module_constant(module, relocated("R_X86_64_GLOB_DAT", "visible"), &value), 0);
	assert_int_equal(value, find_one(module, "visible")->vaddr);
	assert_int_equal(kymo_module_find_object(module, "table", &vaddr, &size), 0);
	assert_int_equal(kymo_module_constant(module, vaddr, &value), 0);
	assert_int_equal(value, find_one(module, "hidden")->vaddr);
	/* Every user may write to it; nowhere. */
	assert_int_equal(kymo_module_find_object(module, "variable", &vaddr, &size), 0);
	assert_int_equal(kymo_module_constant(module, vaddr, &value), -ENOENT);
	assert_int_equal(kymo_module_constant(module, 0x7000000, &value), -ENOENT);
	assert_int_equal(kymo_module_constant(module, UINT64_MAX, &value), -ENOENT);
	/* What is there is what the resolver returns. */
	assert_int_equal(kymo_module_constant(module, relocated("R_X86_64_IRELATIVE", ""), &value), -ENOENT);
	kymo_module_close(module);
}

static void the_words_of_an_ifunc_are_those_that_its_resolver_fills(void **state)
{
	struct kymo_module *module = open_module(in_directory("indirect.so"));
	uint64_t resolver = find_one(module, "chosen")->vaddr, words[2], other;
	uint64_t by_name = relocated("R_X86_64_JUMP_SLOT", "chosen"), by_address = relocated("R_X86_64_IRELATIVE", "");

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(kymo_module_bound_word(module, resolver, i, &words[i]), 0);
	assert_true((words[0] == by_name && words[1] == by_address) || (words[0] == by_address && words[1] == by_name));
	assert_int_equal(kymo_module_bound_word(module, resolver, 2, &other), -ENOENT);
	assert_int_equal(kymo_module_bound_word(module, find_one(module, "visible")->vaddr, 0, &other), -ENOENT);
	kymo_module_close(module);
}

static void of_aliases_a_pattern_gives_the_shortest(void **state)
{
	struct kymo_module *module = open_module(in_directory("versioned.so"));

	assert_string_equal(find_one(module, "*[ae]*[ta]")->name, "zeta");
	assert_string_equal(find_one(module, "ze?a")->name, "zeta");
	assert_int_equal(find_one(module, "alpha")->vaddr, find_one(module, "zeta")->vaddr);
	kymo_module_close(module);
}

static void several_functions_of_one_name_are_all_found(void **state)
{
	struct kymo_module *module = open_module(in_directory("twins"));
	const struct kymo_symbol **found = NULL;
	size_t n;

	succeeds(kymo_module_find(module, "same", &found, &n));
	assert_int_equal(n, 2);
	assert_true(found[0]->vaddr < found[1]->vaddr);
	assert_false(found[0]->is_global);
	free(found);
	kymo_module_close(module);
}

static void nothing_found_is_no_error(void **state)
{
	struct kymo_module *module = open_module(in_directory("twins"));

	assert_int_equal(count(module, "absent"), 0);
	assert_int_equal(count(module, "absent*"), 0);
	assert_int_equal(count(module, ""), 0);
	assert_int_equal(count(module, "@"), 0);
	kymo_module_close(module);
}

static void what_is_a_glob_is_told_from_names(void **state)
{
	assert_true(kymo_is_glob("mem*"));
	assert_true(kymo_is_glob("read?"));
	assert_true(kymo_is_glob("[ab]c"));
	assert_false(kymo_is_glob("malloc"));
	assert_false(kymo_is_glob("_ZN3foo3barEv"));
}

static void near_names_come_nearest_first(void **state)
{
	struct kymo_module *module = open_named("libc");
	char near[200];

	kymo_module_nearest(module, "mallloc", near, sizeof(near));
	assert_memory_equal(near, "malloc", 6);
	kymo_module_nearest(module, "pthread_craete", near, sizeof(near));
	assert_memory_equal(near, "pthread_create, ", 16);
	/* At most three. */
	assert_non_null(strchr(near, ','));
	assert_null(strchr(strchr(strchr(near, ',') + 1, ',') + 1, ','));
	kymo_module_nearest(module, "nothing_is_like_this_at_all", near, sizeof(near));
	assert_string_equal(near, "");
	kymo_module_nearest(module, "", near, sizeof(near));
	assert_string_equal(near, "");
	kymo_module_nearest(module, "mallloc", near, 4);
	assert_string_equal(near, "mal");
	kymo_module_close(module);
}

static void objects_are_found_by_name(void **state)
{
	struct kymo_module *module = open_module(in_directory("versioned.so"));
	uint64_t vaddr, size, offset;
	int value;
	const struct kymo_segment *segments;
	size_t n;

	assert_int_equal(kymo_module_find_object(module, "public_object", &vaddr, &size), 0);
	assert_int_equal(size, sizeof(value));
	assert_int_equal(kymo_module_vaddr_to_offset(module, vaddr, &offset), 0);
	segments = kymo_module_segments(module, &n);
	assert_true(vaddr >= segments[n - 1].vaddr);
	assert_int_equal(kymo_module_find_object(module, "alpha", &vaddr, &size), -ENOENT);
	assert_int_equal(kymo_module_find_object(module, "absent", &vaddr, &size), -ENOENT);
	kymo_module_close(module);
	/* What debuggers need to find threads. */
	module = open_named("libc");
	assert_int_equal(kymo_module_find_object(module, "_thread_db_pthread_tid", &vaddr, &size), 0);
	assert_int_equal(size, 12);
	kymo_module_close(module);
}

/* By address, then by name, each once; also where many share an address, and where addresses differ in all bytes. */
static void check_order(const char *path, size_t least)
{
	struct kymo_module *module = NULL;
	const struct kymo_symbol *symbols;
	size_t n;

	succeeds(kymo_module_open(path, &module));
	symbols = kymo_module_symbols(module, &n);
	assert_in_range(n, least, SIZE_MAX);
	for (size_t i = 1; i < n; i++)
		assert_true(
			symbols[i - 1].vaddr < symbols[i].vaddr ||
			(symbols[i - 1].vaddr == symbols[i].vaddr && strcmp(symbols[i - 1].name, symbols[i].name) < 0));
	kymo_module_close(module);
}

static void symbols_are_in_order(void **state)
{
	FILE *source = fopen(in_directory("aliases.s"), "w");

	assert_non_null(source);
	fputs(".text\n.globl _start\n_start:\n", source);
	for (int i = 0; i < 200; i++)
		fprintf(source, ".globl f%d\n.type f%d, @function\nf%d:\n%s", i * 37 % 200, i * 37 % 200, i * 37 % 200,
			i % 20 ? "" : "ret\n");
	fputs("ret\n.section .note.GNU-stack\n", source);
	fclose(source);
	run("gcc -nostdlib -static -Wl,-Ttext=0x123456789000 aliases.s -o aliases");
	check_order(in_directory("aliases"), 200);
	check_order(in_directory("versioned.so"), 8);
	check_order("/lib/x86_64-linux-gnu/libc.so.6", 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_are_in_order),
		cmocka_unit_test(functions_are_those_of_nm),
		cmocka_unit_test(each_symbol_is_in_the_file),
		cmocka_unit_test(plt_stubs_are_no_functions),
		cmocka_unit_test(a_plain_name_takes_the_default_version),
		cmocka_unit_test(a_name_that_only_old_programs_know_is_found),
		cmocka_unit_test(two_versions_of_one_address_are_both_found),
		cmocka_unit_test(an_ifunc_says_so),
		cmocka_unit_test(words_that_only_relocation_writes_are_constant),
		cmocka_unit_test(the_words_of_an_ifunc_are_those_that_its_resolver_fills),
		cmocka_unit_test(of_aliases_a_pattern_gives_the_shortest),
		cmocka_unit_test(several_functions_of_one_name_are_all_found),
		cmocka_unit_test(nothing_found_is_no_error),
		cmocka_unit_test(what_is_a_glob_is_told_from_names),
		cmocka_unit_test(near_names_come_nearest_first),
		cmocka_unit_test(objects_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
