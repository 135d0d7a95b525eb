#include "sym/find.h"
#include "sym/functions.h"
#include "sym/glob.h"
#include "sym/golang.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "sym/symbols.h"
#include "sym/testing.h"

/*
 * A program as Go's linker makes it, but for what the functions do. FORM is the first version of Go that writes such a
 * table, TEXT its header's start of the text. SECTION says where it is, and OFF what is wrong with moduledata. Code of
 * another compiler comes first.
 */
static const char source[] =
	"#if FORM == 2\n#define NAMES head\n#define BASE head\n#define SKIPPED 64\n#define HEAD .long 0xfffffffb; "
	".byte 0, 0, 1, 8; .quad 5\n"
	"#else\n#define NAMES names\n#define BASE table\n#define SKIPPED 144\n#endif\n"
	"#if FORM == 16\n#define HEAD .long 0xfffffffa; .byte 0, 0, 1, 8; .quad 5, 0, names - head, 0, 0, 0, table - "
	"head\n#endif\n"
	"#if FORM >= 18\n#define HEAD .long MAGIC; .byte 0, 0, 1, 8; .quad 5, 0, TEXT, names - head, 0, 0, 0, table - "
	"head\n"
	"#define ADDRESS .long\n#define FROM - text\n#else\n#define ADDRESS .quad\n#define FROM\n#endif\n"
	"#if FORM == 18\n#define MAGIC 0xfffffff0\n#else\n#define MAGIC 0xfffffff1\n#endif\n"
	"#define RECORD(start, name, resume) ADDRESS start FROM; .long name - NAMES, 0, resume, 0, 0, 0, 0, 0\n"
	"#define ENTRY(start, record) ADDRESS start FROM, record - BASE\n"
	".text\n.globl _start, text\n_start: .skip 48, 0x90\n"
	"text: .skip 16, 0x90\n"
	"second: .skip 20, 0x90\n .skip 12, 0xcc\n"
	"third: .skip 14, 0x90\n .byte 0xeb, 0xcc\n"
	"fourth: .skip 4, 0x90\n .byte 0xeb, 0xcc, 0xcc, 0xcc\n"
	"fifth: .skip 8, 0x90\n"
	"end:\n"
	"#ifdef SYMBOL\n.globl symbol\n.type symbol, @function\n.set symbol, second\n.size symbol, 20\n#endif\n"
	".section SECTION\n.balign 32\nhead: HEAD\n"
	"table: ENTRY(text, r1); ENTRY(second, r2); ENTRY(third, r3); ENTRY(fourth, r4); ENTRY(fifth, r5); ADDRESS end "
	"FROM\n"
	"r1: RECORD(text, n1, 7)\nr2: RECORD(second, n2, 0)\nr3: RECORD(third, n3, 0)\nr4: RECORD(fourth, n4, 0)\nr5: "
	"RECORD(fifth, n5, 0)\n"
	"names: .asciz \"\"\nn1: .asciz \"main.one\"\nn2: .asciz \"main.(*T).two\"\nn3: .asciz \"main.(*OtherT).two\"\n"
	"n4: .asciz \"main.Map[...]\"\nn5: .asciz \"runtime.goexit\"\n"
	".data\n.balign 8\n .quad head, head\n .skip SKIPPED\n .quad text, end + OFF, text, end + OFF\n .quad head\n"
	".section .note.GNU-stack,\"\",@progbits\n";

#define NAMED "'-DSECTION=.gopclntab,\"a\",@progbits' -DOFF=0 "
#define RELOCATED "'-DSECTION=.gopclntab,\"aw\",@progbits' -DOFF=0 "
#define ELSEWHERE "'-DSECTION=.data.rel.ro,\"aw\",@progbits' -DOFF=0 "
#define WRONG "'-DSECTION=.gopclntab,\"a\",@progbits' -DOFF=1 "
#define ELSEWHERE_WRONG "'-DSECTION=.data.rel.ro,\"aw\",@progbits' -DOFF=1 "

/* Build ./golang and ./stripped with these options of gcc's. Where the functions start. */
static uint64_t build(const char *options)
{
	unsigned long long text;
	FILE *lines;

	write_file("golang.S", source);
	run("gcc -nostdlib -Wl,-e,_start %s golang.S -o golang && strip -o stripped golang", options);
	lines = lines_of("nm golang | grep ' text$'");
	assert_int_equal(fscanf(lines, "%llx", &text), 1);
	pclose(lines);
	return text;
}

static void write_bytes(const char *name, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(in_directory(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The one symbol of that name and its size; 0 where there is none. */
static uint64_t address_of(struct kymo_module *module, const char *name, uint64_t *size_ret)
{
	const struct kymo_symbol **found = NULL;
	uint64_t vaddr;
	size_t n;

	succeeds(kymo_module_find(module, name, &found, &n));
	assert_in_range(n, 0, 1);
	vaddr = n ? found[0]->vaddr : 0;
	*size_ret = n ? found[0]->size : 0;
	free(found);
	return vaddr;
}

static void is_function(struct kymo_module *module, const char *name, uint64_t start, uint64_t size)
{
	const struct kymo_function *function = kymo_module_function_at(module, start + size - 1);
	uint64_t found;

	assert_int_equal(address_of(module, name, &found), start);
	assert_int_equal(found, size);
	assert_non_null(function);
	assert_string_equal(function->name, name);
	assert_int_equal(function->start, start);
	assert_int_equal(function->end, start + size);
}

/* All that the table says, of a file in which the text is at `text`. */
static void has_all(const char *file, uint64_t text)
{
	struct kymo_module *module = open_module(in_directory(file));
	uint64_t low, high;
	uint32_t left;
	size_t n;

	kymo_module_symbols(module, &n);
	assert_int_equal(n, 5);
	is_function(module, "main.one", text, 16);
	is_function(module, "main.(*T).two", text + 16, 20);
	is_function(module, "main.(*OtherT).two", text + 48, 16);
	is_function(module, "main.Map[...]", text + 64, 6);
	is_function(module, "runtime.goexit", text + 72, 8);
	assert_true(has_entry(module, text + 7));
	assert_true(has_entry(module, text + 73));
	succeeds(kymo_module_small_stacks(module, &low, &high, &left));
	assert_int_equal(low, text);
	assert_int_equal(high, text + 80);
	assert_in_range(left, 512, 800);
	kymo_module_close(module);
}

static void has_nothing(const char *file)
{
	struct kymo_module *module = open_module(in_directory(file));
	uint64_t low, high;
	uint32_t left;
	size_t n;

	kymo_module_symbols(module, &n);
	assert_int_equal(n, 0);
	succeeds(kymo_module_small_stacks(module, &low, &high, &left));
	assert_int_equal(low, high);
	kymo_module_close(module);
}

/* Opening succeeds, there are no names, and callers that ask for functions are told what is wrong. */
static void is_wrong(const char *file, const char *why)
{
	struct kymo_module *module = open_module(in_directory(file));
	const struct kymo_function *functions;
	uint64_t low, high;
	uint32_t left;
	size_t n;

	kymo_module_symbols(module, &n);
	assert_int_equal(n, 0);
	fails(kymo_module_functions(module, &functions, &n), KYMO_ERROR_BAD_DATA, why);
	fails(kymo_module_small_stacks(module, &low, &high, &left), KYMO_ERROR_BAD_DATA, why);
	kymo_module_close(module);
}

/* The table of 1.26 is that of 1.20, but that it does not say where the text is. */
static const char *const forms[] = { "-DFORM=2 ", "-DFORM=16 ", "-DFORM=18 -DTEXT=text ", "-DFORM=20 -DTEXT=text ",
				     "-DFORM=20 -DTEXT=0 " };

static void each_form_names_functions_of_stripped_programs(void **state)
{
	char options[300];

	for (size_t i = 0; i < kymo_countof(forms); i++) {
		snprintf(options, sizeof(options), "-static %s %s", NAMED, forms[i]);
		has_all("stripped", build(options));
		snprintf(options, sizeof(options), "-pie -Wl,-z,text %s %s", RELOCATED, forms[i]);
		has_all("stripped", build(options));
	}
}

static void the_table_is_found_without_its_section(void **state)
{
	char options[300];
	uint64_t text;
	size_t size;

	for (size_t i = 0; i < kymo_countof(forms); i++) {
		snprintf(options, sizeof(options), "-static %s %s", ELSEWHERE, forms[i]);
		has_all("stripped", build(options));
		snprintf(options, sizeof(options), "-pie -Wl,-z,text %s %s", ELSEWHERE, forms[i]);
		text = build(options);
		has_all("stripped", text);
		kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("stripped"), &size);

		memset(bytes + 40, 0, 8); /* e_shoff */
		memset(bytes + 60, 0, 4); /* e_shnum, e_shstrndx */
		write_bytes("bare", bytes, size);
		has_all("bare", text);
	}
}

static void what_only_looks_like_a_table_is_none(void **state)
{
	char options[300];

	for (size_t i = 0; i < kymo_countof(forms); i++) {
		snprintf(options, sizeof(options), "-static %s %s", ELSEWHERE_WRONG, forms[i]);
		build(options);
		has_nothing("stripped");
	}
}

static void a_text_that_nothing_tells_is_not_guessed(void **state)
{
	build("-static " WRONG "-DFORM=20 -DTEXT=0");
	is_wrong("stripped", ".gopclntab is damaged: nothing says where the text starts");
}

static void symbols_come_first(void **state)
{
	uint64_t text = build("-static -DSYMBOL -DFORM=20 -DTEXT=text " NAMED), size;
	struct kymo_module *module = open_module(in_directory("golang"));
	size_t n;

	kymo_module_symbols(module, &n);
	assert_int_equal(n, 5);
	is_function(module, "symbol", text + 16, 20);
	is_function(module, "main.one", text, 16);
	assert_int_equal(address_of(module, "main.(*T).two", &size), 0);
	kymo_module_close(module);
}

static void what_is_damaged_is_told(void **state)
{
	static const struct {
		uint64_t at, value; /* offset of a 4-byte word from the head on */
		const char *why;
	} cases[] = {
		{ 0, 0xfffffff7, "a form of Go that is not known" },
		{ 8, 0x10000000, "the function table lies outside" },
		{ 64, 0x7fffffff, "the function table lies outside" },
		{ 72, 0x7fffffff, "a function lies outside of the code" },
		{ 80, 1000, "a function lies outside of the code" },
		{ 88, 0, "a function lies outside of the code" },
		{ 76, 0x7fffffff, "a function's record lies outside" },
		{ 116 + 4, 0xfffffff0, "a function's name lies outside" },
	};
	static const uint8_t head[] = { 0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	uint8_t *found;
	size_t size;

	build("-static -DFORM=20 -DTEXT=text " NAMED);
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("stripped"), &size);

	found = memmem(bytes, size, head, sizeof(head));
	assert_non_null(found);
	for (size_t i = 0; i < kymo_countof(cases); i++) {
		uint32_t before, after = (uint32_t)cases[i].value;

		memcpy(&before, found + cases[i].at, sizeof(before));
		memcpy(found + cases[i].at, &after, sizeof(after));
		write_bytes("damaged", bytes, size);
		is_wrong("damaged", cases[i].why);
		memcpy(found + cases[i].at, &before, sizeof(before));
	}
}

static void names_are_no_patterns(void **state)
{
	uint64_t text = build("-static -DFORM=20 -DTEXT=text " NAMED), size;
	struct kymo_module *module = open_module(in_directory("stripped"));
	const struct kymo_symbol **found = NULL;
	static const struct {
		const char *pattern;
		size_t n;
	} globs[] = { { "main.*", 4 },
		      { "main.(*).two", 2 },
		      { "main.(*T).t*", 1 },
		      { "main.M*[...]", 1 },
		      { "main.(*", 2 },
		      { "main.(\\*T).tw?", 1 },
		      { "*", 5 } };
	char *glob;
	size_t n;

	assert_false(kymo_is_glob("main.(*T).two"));
	assert_false(kymo_is_glob("main.Map[...]"));
	assert_false(kymo_is_glob("main.(*List[...]).Len"));
	assert_true(kymo_is_glob("main.(*T).t*"));
	assert_true(kymo_is_glob("main.(*).two"));
	assert_true(kymo_is_glob("main.(*"));
	assert_true(kymo_is_glob("main.Map[.]"));
	assert_int_equal(address_of(module, "main.(*T).two", &size), text + 16);
	assert_int_equal(address_of(module, "main.Map[...]", &size), text + 64);
	for (size_t i = 0; i < kymo_countof(globs); i++) {
		succeeds(kymo_module_find(module, globs[i].pattern, &found, &n));
		assert_int_equal(n, globs[i].n);
		free(found);
	}
	glob = kymo_glob_create("a(*b)[...]\\(*c\\");
	assert_string_equal(glob, "a(\\*b)\\[...]\\(*c\\");
	free(glob);
	kymo_module_close(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_names_functions_of_stripped_programs),
		cmocka_unit_test(the_table_is_found_without_its_section),
		cmocka_unit_test(what_only_looks_like_a_table_is_none),
		cmocka_unit_test(a_text_that_nothing_tells_is_not_guessed),
		cmocka_unit_test(symbols_come_first),
		cmocka_unit_test(what_is_damaged_is_told),
		cmocka_unit_test(names_are_no_patterns),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
