#include "testing.h"
#include "sym/entries.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "sym/symbols.h"

static const char assembler[] =
	".text\n"
	".globl outer\n.type outer, @function\nouter:\n.cfi_startproc\n .skip 40, 0x90\n"
	".globl nested\n.type nested, @function\nnested:\n .skip 20, 0x90\n.size nested, 20\n"
	" .skip 20, 0x90\n ret\n.cfi_endproc\n.size outer, .-outer\n"
	/* A size that reaches into the next function. */
	".balign 16\n.globl greedy\n.type greedy, @function\ngreedy:\n .skip 31, 0x90\n ret\n.size greedy, 40\n"
	".globl neighbor\n.type neighbor, @function\nneighbor:\n .skip 15, 0x90\n ret\n.size neighbor, "
	".-neighbor\n"
	/* A symbol without a size, and a description. */
	".balign 16\n.globl sizeless\n.type sizeless, @function\nsizeless:\n.cfi_startproc\n .skip 10, 0x90\n "
	"ret\n.cfi_endproc\n"
	/* A symbol with neither. */
	".balign 16\n.globl unknown\n.type unknown, @function\nunknown:\n ret\n"
	/* One description over a sized function and more. */
	".balign 16\n.globl short\n.type short, @function\nshort:\n.cfi_startproc\n .skip 7, 0x90\n ret\n.size short, "
	"8\n"
	" .skip 15, 0x90\n ret\n.cfi_endproc\n"
	/* A description without a symbol. */
	".balign 16\n.Lanonymous:\n.cfi_startproc\n .skip 31, 0x90\n ret\n.cfi_endproc\n"
	/* Two names of one function. */
	".balign 16\n.globl a_long_name\n.type a_long_name, @function\n.globl brief\n.type brief, @function\n.type b, "
	"@function\n"
	"a_long_name:\nbrief:\nb: .skip 9, 0x90\n ret\n.size a_long_name, 10\n.size brief, 10\n.size b, 10\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("assembler.s", assembler);
	run("gcc -shared -nostdlib assembler.s -o assembler.so");
	write_file("plain.c", "int one(int x) { return x + 1; } static __attribute__((noinline)) int two(int x) { "
			      "return x * x + one(x); }\n"
			      "int main(int c, char **v) { return two(c); }\n");
	run("gcc -O1 plain.c -o plain && strip -o stripped plain");
	return 0;
}

static uint64_t address_of(struct kymo_module *module, const char *name)
{
	const struct kymo_symbol **found = NULL;
	uint64_t vaddr;
	size_t n;

	succeeds(kymo_module_find(module, name, &found, &n));
	assert_int_equal(n, 1);
	vaddr = found[0]->vaddr;
	free(found);
	return vaddr;
}

static void is_extent(const struct kymo_function *function, const char *name, uint64_t start, uint64_t size)
{
	assert_non_null(function);
	if (name)
		assert_string_equal(function->name, name);
	else
		assert_null(function->name);
	assert_int_equal(function->start, start);
	assert_int_equal(function->end, start + size);
}

static void symbols_and_descriptions_make_extents(void **state)
{
	struct kymo_module *module = open_module(in_directory("assembler.so"));
	uint64_t at = address_of(module, "outer");

	is_extent(kymo_module_function_at(module, at), "outer", at, 81);
	is_extent(kymo_module_function_at(module, at + 45), "outer", at, 81);
	is_extent(kymo_module_function_at(module, at + 80), "outer", at, 81);
	assert_null(kymo_module_function_at(module, at + 81));
	at = address_of(module, "greedy");
	is_extent(kymo_module_function_at(module, at), "greedy", at, 32);
	is_extent(kymo_module_function_at(module, at + 32), "neighbor", at + 32, 16);
	at = address_of(module, "sizeless");
	is_extent(kymo_module_function_at(module, at), "sizeless", at, 11);
	assert_null(kymo_module_function_at(module, address_of(module, "unknown")));
	at = address_of(module, "short");
	is_extent(kymo_module_function_at(module, at), "short", at, 8);
	is_extent(kymo_module_function_at(module, at + 8), NULL, at + 8, 16);
	at += 32;
	is_extent(kymo_module_function_at(module, at), NULL, at, 32);
	at = address_of(module, "brief");
	is_extent(kymo_module_function_at(module, at), "brief", at, 10);
	kymo_module_close(module);
}

static void places_are_described_by_the_nearest_name(void **state)
{
	struct kymo_module *module = open_module(in_directory("assembler.so"));
	uint64_t at = address_of(module, "outer");
	char text[64], expected[64];

	kymo_module_describe(module, at, text, sizeof(text));
	assert_string_equal(text, "outer");
	kymo_module_describe(module, at + 18, text, sizeof(text));
	assert_string_equal(text, "outer+0x12");
	kymo_module_describe(module, at + 40, text, sizeof(text));
	assert_string_equal(text, "nested");
	kymo_module_describe(module, address_of(module, "unknown"), text, sizeof(text));
	assert_string_equal(text, "unknown");
	kymo_module_describe(module, address_of(module, "brief"), text, sizeof(text));
	assert_string_equal(text, "brief");
	at = address_of(module, "short") + 9;
	snprintf(expected, sizeof(expected), "0x%llx", (unsigned long long)at);
	kymo_module_describe(module, at, text, sizeof(text));
	assert_string_equal(text, expected);
	kymo_module_describe(module, address_of(module, "outer") + 18, text, 4);
	assert_string_equal(text, "out");
	kymo_module_close(module);
}

/* How much of [start, end) lies in functions. */
static uint64_t covered(const struct kymo_function *functions, size_t n, uint64_t start, uint64_t end)
{
	size_t low = 0, high = n;
	uint64_t sum = 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (functions[mid].end <= start)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < n && functions[low].start < end; low++) {
		uint64_t from = functions[low].start > start ? functions[low].start : start;
		uint64_t to = functions[low].end < end ? functions[low].end : end;

		sum += to - from;
	}
	return sum;
}

/* All that readelf finds described lies in functions, and begins with an entry; functions do not overlap. */
static void compare_with_readelf(const char *path)
{
	struct kymo_module *module = open_module(path);
	const struct kymo_function *functions;
	unsigned long long start, end;
	size_t n, n_fdes = 0;
	char line[1000];
	FILE *lines = lines_of("readelf --debug-dump=frames '%s' 2>/dev/null", kymo_module_path(module));

	succeeds(kymo_module_functions(module, &functions, &n));
	for (size_t i = 0; i < n; i++) {
		assert_true(functions[i].start < functions[i].end);
		assert_true(!i || functions[i - 1].end <= functions[i].start);
	}
	while (fgets(line, sizeof(line), lines)) {
		const char *pc = strstr(line, " pc=");

		if (!pc || !strstr(line, " FDE ") || sscanf(pc, " pc=%llx..%llx", &start, &end) != 2)
			continue;
		n_fdes++;
		assert_int_equal(covered(functions, n, start, end), end - start);
		/* Most of libc's would make this quadratic and slow. */
		if (n_fdes % 16 == 0)
			assert_true(has_entry(module, start));
	}
	pclose(lines);
	assert_true(n_fdes > 3);
	kymo_module_close(module);
}

static void all_that_readelf_finds_described_is_in_functions(void **state)
{
	static const char *const names[] = { "libc", "bash", "/usr/bin/python3", "libelf", "libstdc++" };

	for (size_t i = 0; i < kymo_countof(names); i++) {
		char *path = NULL;

		succeeds(kymo_find_file(names[i], &path));
		compare_with_readelf(path);
		free(path);
	}
	compare_with_readelf(in_directory("plain"));
}

static void sizes_are_those_of_nm(void **state)
{
	struct kymo_module *module = open_module(in_directory("plain"));
	unsigned long long start, size;
	char line[300], kind, name[200];
	size_t n = 0;
	FILE *lines = lines_of("nm -S --defined-only plain");

	while (fgets(line, sizeof(line), lines))
		if (sscanf(line, "%llx %llx %c %199s", &start, &size, &kind, name) == 4 && strchr("tT", kind)) {
			is_extent(kymo_module_function_at(module, start), name, start, size);
			n++;
		}
	pclose(lines);
	assert_true(n >= 4);
	kymo_module_close(module);
}

static void a_stripped_program_has_the_same_extents_without_names(void **state)
{
	struct kymo_module *plain = open_module(in_directory("plain")),
			   *stripped = open_module(in_directory("stripped"));
	static const char *const names[] = { "main", "one", "two", "_start" };
	size_t n;

	kymo_module_symbols(stripped, &n);
	assert_int_equal(n, 0);
	for (size_t i = 0; i < kymo_countof(names); i++) {
		const struct kymo_function *function = kymo_module_function_at(plain, address_of(plain, names[i]));

		is_extent(kymo_module_function_at(stripped, function->start), NULL, function->start,
			  function->end - function->start);
	}
	kymo_module_close(plain);
	kymo_module_close(stripped);
}

static void a_damaged_eh_frame_is_an_error_each_time(void **state)
{
	size_t size, n;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("stripped"), &size);
	struct kymo_module *module;
	const struct kymo_function *functions;
	const struct kymo_section *sections;
	const uint64_t *entries;
	uint64_t offset = 0;

	succeeds(open_bytes(bytes, size, &module));
	sections = kymo_module_sections(module, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(sections[i].name, ".eh_frame"))
			assert_int_equal(kymo_module_vaddr_to_offset(module, sections[i].vaddr, &offset), 0);
	kymo_module_close(module);
	assert_true(offset);
	/* The first entry is longer than the section. */
	memset(bytes + offset, 0x7f, 4);
	succeeds(open_bytes(bytes, size, &module));
	for (int i = 0; i < 2; i++) {
		fails(kymo_module_functions(module, &functions, &n), KYMO_ERROR_BAD_DATA,
		      "file: .eh_frame is damaged: an entry cannot be read (vaddr 0x");
		fails(kymo_module_entries(module, &entries, &n), KYMO_ERROR_BAD_DATA, ".eh_frame is damaged");
		assert_null(kymo_module_function_at(module, kymo_module_entry(module)));
	}
	kymo_module_close(module);
}

static void many_symbols_are_no_trouble(void **state)
{
	struct kymo_module *module;
	const struct kymo_function *functions;
	const struct kymo_symbol **found;
	size_t n;

	run("(echo .text; seq 100000 | sed 's/.*/.globl function_number_&\\n.type function_number_&, "
	    "@function\\nfunction_number_&: ret\\n"
	    ".size function_number_&, 1/') >many.s; gcc -shared -nostdlib many.s -o many.so");
	module = open_module(in_directory("many.so"));
	succeeds(kymo_module_functions(module, &functions, &n));
	assert_int_equal(n, 100000);
	succeeds(kymo_module_find(module, "function_number_9999?", &found, &n));
	assert_int_equal(n, 10);
	free(found);
	kymo_module_close(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_and_descriptions_make_extents),
		cmocka_unit_test(places_are_described_by_the_nearest_name),
		cmocka_unit_test(all_that_readelf_finds_described_is_in_functions),
		cmocka_unit_test(sizes_are_those_of_nm),
		cmocka_unit_test(a_stripped_program_has_the_same_extents_without_names),
		cmocka_unit_test(a_damaged_eh_frame_is_an_error_each_time),
		cmocka_unit_test(many_symbols_are_no_trouble),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
