#include "testing.h"
#include "sym/entries.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/golang.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/rseq.h"
#include "sym/sym.h"
#include "sym/symbols.h"

#include <elf.h>

/*
 * A program that tells which of its addresses its data names: constructors, functions behind pointers, labels of
 * computed jumps, at the start of packed structures too. Addresses as linked.
 */
static const char telling[] = "#include <stdio.h>\n"
			      "extern char __ehdr_start[];\n"
			      "static char *base = BASE;\n"
			      "static void tell(void *p) { printf(\"%lx\\n\", (unsigned long)((char *)p - base)); }\n"
			      "static int function(int x) { return x * 3; }\n"
			      "int (*pointer)(int) = function;\n"
			      "#pragma pack(1)\n"
			      "struct packed { char c; int (*pointer)(int); } packed = { 1, function };\n"
			      "__attribute__((constructor)) static void begin(void) { pointer = function; }\n"
			      "__attribute__((destructor)) static void end(void) { pointer = 0; }\n"
			      "__attribute__((noinline)) int run(int n, int x)\n"
			      "{\n"
			      "	static void *const labels[] = { &&add, &&multiply, &&leave };\n"
			      "	static const unsigned char program[] = { 0, 1, 0, 2 };\n"
			      "	const unsigned char *at = program;\n"
			      "	if (n < 0) { for (int i = 0; i < 3; i++) tell(labels[i]); return 0; }\n"
			      "	goto *labels[*at++];\n"
			      "add:	x += n; goto *labels[*at++];\n"
			      "multiply: x *= n; goto *labels[*at++];\n"
			      "leave:	return x;\n"
			      "}\n"
			      "int main(void) { tell((void *)function); tell((void *)begin); tell((void *)end); "
			      "run(-1, 0); return run(2, 3) == 0; }\n";

static const char throwing[] =
	"#include <stdio.h>\n"
	"#include <string>\n"
	"#include <stdexcept>\n"
	"struct guard { int n; guard(int x) : n(x) {} ~guard() { printf(\"%d\\n\", n); } };\n"
	"__attribute__((noinline)) int risky(int x) { guard g(x); if (x > 3) throw std::runtime_error(\"much\"); "
	"return x; }\n"
	"__attribute__((noinline)) int between(int x) { guard g(x + 1); std::string s(x, 'x'); return risky(x) + "
	"(int)s.size(); }\n"
	"__attribute__((noinline)) int catching(int x)\n"
	"{\n"
	"	try { return between(x); }\n"
	"	catch (const std::logic_error &e) { return -1; }\n"
	"	catch (const std::exception &e) { guard g(7); try { throw; } catch (...) { return risky(1); } }\n"
	"}\n"
	"int main() { return catching(5) + catching(2) == 0; }\n";

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("telling.c", telling);
	write_file("throwing.cc", throwing);
	return 0;
}

/* All that the program tells of itself is in the set, with symbols and without, with section headers and without. */
static void check_telling(const char *flags, bool is_fixed)
{
	unsigned long long vaddr;
	size_t size, n = 0;
	uint8_t *bytes;
	struct kymo_module *full, *stripped, *headless;
	FILE *lines;

	run("gcc -O1 -DBASE=%s telling.c %s -o telling && strip -o stripped telling", is_fixed ? "0" : "__ehdr_start",
	    flags);
	full = open_module(in_directory("telling"));
	stripped = open_module(in_directory("stripped"));
	assert_int_equal(kymo_module_is_pie(full), !is_fixed);
	bytes = read_bytes(in_directory("stripped"), &size);
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = ((Elf64_Ehdr *)bytes)->e_shstrndx = 0;
	succeeds(open_bytes(bytes, size, &headless));
	lines = lines_of("./telling");
	while (fscanf(lines, "%llx", &vaddr) == 1) {
		if (!has_entry(full, vaddr) || !has_entry(stripped, vaddr) || !has_entry(headless, vaddr))
			fail_msg("%s: 0x%llx", flags, vaddr);
		n++;
	}
	pclose(lines);
	assert_int_equal(n, 6);
	assert_true(has_entry(full, kymo_module_entry(full)));
	free(bytes);
	kymo_module_close(full);
	kymo_module_close(stripped);
	kymo_module_close(headless);
}

static void a_position_independent_program(void **state)
{
	check_telling("-fpie -pie", false);
}

static void a_program_with_packed_relative_relocations(void **state)
{
	check_telling("-fpie -pie -Wl,-z,pack-relative-relocs", false);
	run("readelf -SW telling | grep -q relr.dyn");
}

static void a_program_at_a_fixed_address(void **state)
{
	check_telling("-fno-pie -no-pie", true);
}

static void a_static_program(void **state)
{
	check_telling("-fno-pie -static", true);
}

static void a_static_position_independent_program(void **state)
{
	check_telling("-fpie -static-pie", false);
}

static void a_program_with_code_and_data_in_one_segment(void **state)
{
	check_telling("-fpie -pie -Wl,-z,noseparate-code", false);
	check_telling("-fno-pie -no-pie -Wl,-z,noseparate-code", true);
}

/* The set is about code. */
static void all_entries_are_in_executable_sections_and_sorted(void **state)
{
	static const char *const names[] = { "libc", "/usr/bin/python3", "libstdc++" };

	for (size_t i = 0; i < kymo_countof(names); i++) {
		struct kymo_module *module = open_named(names[i]);
		const struct kymo_section *sections;
		const uint64_t *entries;
		size_t n, n_sections, n_symbols;
		const struct kymo_symbol *symbols = kymo_module_symbols(module, &n_symbols);

		sections = kymo_module_sections(module, &n_sections);
		succeeds(kymo_module_entries(module, &entries, &n));
		assert_true(n > 1000);
		for (size_t j = 0; j < n; j++) {
			bool inside = false;

			for (size_t k = 0; k < n_sections; k++)
				inside |= sections[k].executable && entries[j] >= sections[k].vaddr &&
					  entries[j] - sections[k].vaddr < sections[k].size;
			assert_true(inside);
			assert_true(!j || entries[j - 1] < entries[j]);
		}
		for (size_t j = 0; j < n_symbols; j += 32)
			assert_true(has_entry(module, symbols[j].vaddr));
		kymo_module_close(module);
	}
}

/*
 * The compiler's own word about landing pads: in its assembler text, the third field of each call site is the
 * difference of the pad's label and the start of the function. Each such label gets a global name there, nm tells
 * their addresses, and what is asked is the stripped program.
 */
static void check_pads(const char *flags)
{
	struct kymo_module *module;
	unsigned long long vaddr;
	size_t n = 0;
	FILE *lines;

	run("g++ %s -S throwing.cc -o throwing.s && "
	    "sed -n 's/^\t[.]uleb128 \\([.]L[0-9][0-9]*\\)-[.]L.*/\\1/p' throwing.s | sort -u >pads && "
	    "sed 's/\\(.*\\)/.globl pad\\1\\n.set pad\\1, \\1/' pads >>throwing.s && "
	    "g++ %s throwing.s -o throwing && ./throwing >/dev/null && strip -o throwing.stripped throwing",
	    flags, flags);
	module = open_module(in_directory("throwing.stripped"));
	lines = lines_of("nm throwing | grep ' pad'");
	while (fscanf(lines, "%llx %*s %*s", &vaddr) == 1) {
		if (!has_entry(module, vaddr))
			fail_msg("%s: landing pad 0x%llx", flags, vaddr);
		n++;
	}
	pclose(lines);
	assert_true(n >= 5);
	kymo_module_close(module);
}

static void landing_pads_are_those_of_the_compiler(void **state)
{
	check_pads("-O0");
	check_pads("-O2");
	check_pads("-O2 -fno-pie -no-pie -static");
	check_pads("-O2 -Wl,-z,noseparate-code");
}

static void pads_of_relocated_frame_entries_are_found(void **state)
{
	struct kymo_module *module;
	unsigned long long pad = 0;
	size_t n;
	const struct kymo_function *functions;
	FILE *lines;

	/* Absolute pointers everywhere, as linkers for other systems make them: the file has zeros, and relocations. */
	write_file("absolute.s",
		   ".text\nfirst: .skip 16, 0x90\nfunction:\n.Lstart: .skip 8, 0x90\n.globl pad\npad: .skip 8, "
		   "0x90\n.Lend:\n"
		   ".section .gcc_except_table,\"aw\"\n.Llsda: .byte 0xff, 0xff, 0x01\n .uleb128 4\n .byte 0, 8, 8, 0\n"
		   ".globl personality\n.text\npersonality: ret\n"
		   ".section .eh_frame,\"aw\",@unwind\n"
		   ".Lcie: .long .Lcie_end - .Lcie_start\n.Lcie_start: .long 0\n .byte 1\n .asciz \"zPLR\"\n .uleb128 "
		   "1\n .sleb128 -8\n"
		   " .uleb128 16\n .uleb128 11\n .byte 0\n .quad personality\n .byte 0\n .byte 0\n .balign 8, "
		   "0\n.Lcie_end:\n"
		   " .long .Lfde_end - .Lfde_start\n.Lfde_start: .long .Lfde_start - .Lcie\n .quad .Lstart\n .quad "
		   ".Lend - .Lstart\n"
		   " .uleb128 8\n .quad .Llsda\n .balign 8, 0\n.Lfde_end:\n .long 0\n"
		   ".section .note.GNU-stack,\"\",@progbits\n");
	run("gcc -shared -nostdlib absolute.s -o absolute.so && strip -o absolute.stripped.so -N pad absolute.so");
	lines = lines_of("nm absolute.so | grep ' pad$'");
	assert_int_equal(fscanf(lines, "%llx", &pad), 1);
	pclose(lines);
	module = open_module(in_directory("absolute.stripped.so"));
	assert_true(has_entry(module, pad));
	succeeds(kymo_module_functions(module, &functions, &n));
	assert_int_equal(n, 1);
	assert_int_equal(functions[0].start, pad - 8);
	assert_int_equal(functions[0].end, pad + 8);
	kymo_module_close(module);
}

static void damaged_exception_tables_are_an_error(void **state)
{
	size_t size, n, n_functions;
	uint64_t offset = 0;
	struct kymo_module *module;
	const struct kymo_section *sections;
	const struct kymo_function *functions;
	const uint64_t *entries;

	run("g++ -O2 throwing.cc -o throwing");
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("throwing"), &size);

	succeeds(open_bytes(bytes, size, &module));
	sections = kymo_module_sections(module, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(sections[i].name, ".gcc_except_table")) {
			assert_int_equal(kymo_module_vaddr_to_offset(module, sections[i].vaddr, &offset), 0);
			memset(bytes + offset, 0x99, sections[i].size);
		}
	kymo_module_close(module);
	assert_true(offset);
	succeeds(open_bytes(bytes, size, &module));
	fails(kymo_module_entries(module, &entries, &n), KYMO_ERROR_BAD_DATA,
	      "file: the exception table of the function at 0x");
	succeeds(kymo_module_functions(module, &functions, &n_functions));
	assert_true(n_functions > 5);
	kymo_module_close(module);
}

/* As Go 1.20 writes it: three functions, of which the first goes on at its eighth byte when it recovered from a panic,
 * and goroutines return to the third's second. */
static void functions_of_go_are_those_of_its_runtime(void **state)
{
	struct kymo_module *module;
	const struct kymo_function *functions;
	unsigned long long text = 0;
	uint64_t low, high;
	uint32_t left;
	size_t n;
	FILE *lines;

	write_file("golang.s",
		   ".text\n.globl text\ntext: .skip 16, 0x90\n .skip 32, 0x90\n .skip 8, 0x90\n"
		   ".section .gopclntab,\"a\"\n.balign 8\n.Lhead: .long 0xfffffff1\n .byte 0, 0, 1, 8\n"
		   " .quad 3, 0, text, .Lnames - .Lhead, 0, 0, 0, .Ltable - .Lhead\n"
		   ".Lnames: .asciz \"runtime.goexits\", \"runtime.goexit\"\n.balign 8\n"
		   ".Ltable: .long 0, .Lfirst - .Ltable, 16, .Lsecond - .Ltable, 48, .Lthird - .Ltable, 56\n"
		   ".Lfirst: .long 0, 0, 0, 7, 0, 0, 0, 0\n.Lsecond: .long 16, 0, 0, 0, 0, 0, 0, 0\n"
		   ".Lthird: .long 48, 16, 0, 0, 0, 0, 0, 0\n"
		   ".section .note.GNU-stack,\"\",@progbits\n");
	run("gcc -static -nostdlib -Wl,-e,text golang.s -o golang && strip -o golang.stripped golang");
	lines = lines_of("nm golang | grep ' text$'");
	assert_int_equal(fscanf(lines, "%llx", &text), 1);
	pclose(lines);
	module = open_module(in_directory("golang.stripped"));
	succeeds(kymo_module_functions(module, &functions, &n));
	assert_int_equal(n, 3);
	assert_int_equal(functions[0].start, text);
	assert_int_equal(functions[0].end, text + 16);
	assert_int_equal(functions[1].end, text + 48);
	assert_true(has_entry(module, text + 7));
	assert_true(has_entry(module, text + 16));
	assert_false(has_entry(module, text + 8));
	assert_true(has_entry(module, text + 49));
	assert_false(has_entry(module, text + 17));
	succeeds(kymo_module_small_stacks(module, &low, &high, &left));
	assert_int_equal(low, text);
	assert_int_equal(high, text + 56);
	assert_int_equal(left, 800);
	kymo_module_close(module);
	module = open_named("libc");
	succeeds(kymo_module_small_stacks(module, &low, &high, &left));
	assert_int_equal(low, high);
	kymo_module_close(module);
}

static void restartable_sequences_are_found(void **state)
{
	struct kymo_module *module;
	const struct kymo_function *sequences;
	const struct kymo_symbol **found = NULL;
	size_t n;

	write_file("rseq.c", "int marker(int x) { return x; }\n"
			     "__asm__(\".text\\n.balign 16\\n.globl begin\\n.type begin, @function\\nbegin: .skip 12, "
			     "0x90\\n.long 0x53053053\\n\"\n"
			     "\".Labort: ret\\n.size begin, .-begin\\n\"\n"
			     "\".pushsection __rseq_cs, \\\"aw\\\"\\n.balign 32\\n.long 0, 0\\n.quad begin, 9, "
			     ".Labort\\n.popsection\\n\");\n");
	run("gcc -shared -fPIC rseq.c -o rseq.so");
	module = open_module(in_directory("rseq.so"));
	succeeds(kymo_module_find(module, "begin", &found, &n));
	assert_int_equal(n, 1);
	succeeds(kymo_module_rseq(module, &sequences, &n));
	assert_int_equal(n, 1);
	assert_int_equal(sequences[0].start, found[0]->vaddr);
	assert_int_equal(sequences[0].end, found[0]->vaddr + 9);
	/* The abort handler, which the kernel jumps to. */
	assert_true(has_entry(module, found[0]->vaddr + 16));
	free(found);
	kymo_module_close(module);
	module = open_named("libc");
	succeeds(kymo_module_rseq(module, &sequences, &n));
	assert_int_equal(n, 0);
	kymo_module_close(module);
}

static void relocations_that_cannot_be_read_are_an_error(void **state)
{
	size_t size, n;
	kymo_cleanup_free uint8_t *bytes = NULL;
	struct kymo_module *module;
	const uint64_t *entries;
	const struct kymo_segment *segments;
	uint64_t offset = 0;

	run("gcc -O1 -DBASE=__ehdr_start telling.c -o telling");
	bytes = read_bytes(in_directory("telling"), &size);
	succeeds(open_bytes(bytes, size, &module));
	segments = kymo_module_segments(module, &n);
	/* DT_RELASZ becomes odd. */
	for (uint64_t at = segments[n - 1].offset; at + 16 <= segments[n - 1].offset + segments[n - 1].file_size;
	     at += 8) {
		Elf64_Dyn entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.d_tag == DT_RELASZ && entry.d_un.d_val < size)
			offset = at;
	}
	kymo_module_close(module);
	assert_true(offset);
	bytes[offset + 8]++;
	succeeds(open_bytes(bytes, size, &module));
	fails(kymo_module_entries(module, &entries, &n), KYMO_ERROR_BAD_DATA,
	      "file: DT_RELA: damaged relocation table");
	kymo_module_close(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_position_independent_program),
		cmocka_unit_test(a_program_with_packed_relative_relocations),
		cmocka_unit_test(a_program_at_a_fixed_address),
		cmocka_unit_test(a_static_program),
		cmocka_unit_test(a_static_position_independent_program),
		cmocka_unit_test(a_program_with_code_and_data_in_one_segment),
		cmocka_unit_test(all_entries_are_in_executable_sections_and_sorted),
		cmocka_unit_test(landing_pads_are_those_of_the_compiler),
		cmocka_unit_test(pads_of_relocated_frame_entries_are_found),
		cmocka_unit_test(damaged_exception_tables_are_an_error),
		cmocka_unit_test(functions_of_go_are_those_of_its_runtime),
		cmocka_unit_test(restartable_sequences_are_found),
		cmocka_unit_test(relocations_that_cannot_be_read_are_an_error),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
