#include "testing.h"
#include "sym/entries.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/rseq.h"
#include "sym/sym.h"
#include "sym/symbols.h"

#include <elf.h>
#include <unistd.h>

/* A small file with everything that the room reads. */
static const char everything[] =
	"extern \"C\" int printf(const char *, ...);\n"
	"struct guard { ~guard() { printf(\"out\\n\"); } };\n"
	"extern \"C\" { int object = 3; }\n"
	"extern \"C\" int risky(int x) { guard g; if (x > 3) throw x; return printf(\"%d\", x); }\n"
	"extern \"C\" int catching(int x) { try { return risky(x); } catch (int y) { return y; } }\n"
	"static int inner(int x) { return x + object; }\n"
	"int (*pointer)(int) = inner;\n"
	"extern \"C\" int outer(int x) { return pointer(x) + catching(x); }\n"
	"__attribute__((constructor)) static void begin() { object++; }\n";

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("everything.cc", everything);
	run("g++ -O1 -shared -fPIC -Wl,-z,noseparate-code -Wl,-soname,libeverything.so.1 -Wl,--build-id everything.cc "
	    "-o everything.so");
	return 0;
}

/* Everything that a module can be asked; must not crash, whatever the file. */
static void ask_everything(struct kymo_module *module)
{
	const struct kymo_function *functions;
	const struct kymo_symbol **found = NULL;
	const uint64_t *entries;
	char text[100];
	size_t n;

	kymo_error_destroy(kymo_module_functions(module, &functions, &n));
	kymo_error_destroy(kymo_module_entries(module, &entries, &n));
	kymo_error_destroy(kymo_module_rseq(module, &functions, &n));
	kymo_error_destroy(kymo_module_find(module, "*", &found, &n));
	free(found);
	kymo_module_describe(module, kymo_module_entry(module) + 1, text, sizeof(text));
	kymo_module_nearest(module, "catchign", text, sizeof(text));
}

static void the_build_id_is_that_of_readelf(void **state)
{
	static const char *const names[] = { "libc", "bash", "/usr/bin/python3" };

	for (size_t i = 0; i < kymo_countof(names); i++) {
		struct kymo_module *module = open_named(names[i]);
		size_t size;
		const uint8_t *id = kymo_module_build_id(module, &size);
		char text[2 * KYMO_BUILD_ID_MAX + 1] = "", line[200], theirs[200] = "";
		FILE *lines = lines_of("readelf -n '%s'", kymo_module_path(module));

		while (fgets(line, sizeof(line), lines))
			sscanf(line, " Build ID: %199s", theirs);
		pclose(lines);
		for (size_t j = 0; j < size; j++)
			sprintf(text + 2 * j, "%02x", id[j]);
		assert_true(size > 0);
		assert_string_equal(text, theirs);
		kymo_module_close(module);
	}
}

static void segments_and_sections_are_those_of_readelf(void **state)
{
	struct kymo_module *module = open_named("libc");
	const struct kymo_segment *segments;
	const struct kymo_section *sections;
	size_t n_segments, n_sections, n = 0;
	char line[300], type[32], name[64], flags[8];
	unsigned long long vaddr, offset, size, memory;
	uint64_t beyond;
	FILE *lines = lines_of("readelf -lW '%s'", kymo_module_path(module));

	segments = kymo_module_segments(module, &n_segments);
	while (fgets(line, sizeof(line), lines))
		if (sscanf(line, " %31s %llx %llx %*x %llx %llx", type, &offset, &vaddr, &size, &memory) == 5 &&
		    !strcmp(type, "LOAD")) {
			uint64_t back;

			assert_true(n < n_segments);
			assert_int_equal(segments[n].vaddr, vaddr);
			assert_int_equal(segments[n].offset, offset);
			assert_int_equal(segments[n].file_size, size);
			assert_int_equal(segments[n++].memory_size, memory);
			assert_int_equal(kymo_module_offset_to_vaddr(module, offset + size - 1, &back), 0);
			assert_int_equal(back, vaddr + size - 1);
			assert_int_equal(kymo_module_vaddr_to_offset(module, back, &back), 0);
			assert_int_equal(back, offset + size - 1);
		}
	pclose(lines);
	assert_int_equal(n, n_segments);
	assert_int_equal(
		kymo_module_vaddr_to_offset(module, segments[n - 1].vaddr + segments[n - 1].memory_size, &beyond),
		-ENOENT);

	sections = kymo_module_sections(module, &n_sections);
	lines = lines_of("readelf -SW '%s' | sed 's/^ *\\[ *[0-9]*\\]//'", kymo_module_path(module));
	n = 0;
	while (fgets(line, sizeof(line), lines))
		if (sscanf(line, " %63s %31s %llx %llx %llx %*x %7s", name, type, &vaddr, &offset, &size, flags) == 6 &&
		    vaddr && size && strcmp(type, "NOBITS")) {
			assert_true(n < n_sections);
			assert_string_equal(sections[n].name, name);
			assert_int_equal(sections[n].vaddr, vaddr);
			assert_int_equal(sections[n].size, size);
			assert_int_equal(sections[n].executable, strchr(flags, 'X') != NULL);
			assert_int_equal(sections[n].writable, strchr(flags, 'W') != NULL);
			n++;
		}
	pclose(lines);
	assert_int_equal(n, n_sections);
	kymo_module_close(module);
}

static void names_of_itself_are_known(void **state)
{
	struct kymo_module *module = open_named("libc");

	assert_string_equal(kymo_module_soname(module), "libc.so.6");
	assert_true(kymo_module_is_pie(module));
	kymo_module_close(module);
	module = open_named("bash");
	assert_null(kymo_module_soname(module));
	assert_string_equal(kymo_module_interpreter(module), "/lib64/ld-linux-x86-64.so.2");
	assert_true(kymo_module_entry(module) != 0);
	kymo_module_close(module);
	module = open_module(in_directory("everything.so"));
	assert_string_equal(kymo_module_path(module), in_directory("everything.so"));
	assert_string_equal(kymo_module_soname(module), "libeverything.so.1");
	assert_null(kymo_module_interpreter(module));
	kymo_module_close(module);
}

static void what_is_no_program_is_refused_with_a_sentence(void **state)
{
	struct kymo_module *module = NULL;

	fails(open_bytes("", 0, &module), KYMO_ERROR_BAD_DATA, "file is empty");
	fails(open_bytes("#!/bin/sh\n", 10, &module), KYMO_ERROR_BAD_DATA, "file is a script");
	fails(open_bytes("hello, world\n", 13, &module), KYMO_ERROR_BAD_DATA, "file is not an ELF file");
	fails(kymo_module_open(directory, &module), KYMO_ERROR_BAD_DATA, "is not a regular file");
	fails(kymo_module_open(in_directory("absent"), &module), KYMO_ERROR_NOT_FOUND, "/absent: No such file");
	run("mkfifo pipe && gcc -c -x c /dev/null -o object.o");
	fails(kymo_module_open(in_directory("pipe"), &module), KYMO_ERROR_BAD_DATA, "is not a regular file");
	fails(kymo_module_open(in_directory("object.o"), &module), KYMO_ERROR_BAD_DATA, "is an object file");
	assert_null(module);
}

static void other_architectures_are_named(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	struct kymo_module *module = NULL;

	bytes[EI_CLASS] = ELFCLASS32;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA,
	      "file is a 32-bit program; kymo traces x86-64 programs only");
	fails(open_bytes(bytes, 52, &module), KYMO_ERROR_BAD_DATA, "32-bit");
	bytes[EI_CLASS] = ELFCLASS64;
	bytes[18] = EM_AARCH64;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, "file is a program for AArch64 (ELF machine 183)");
	bytes[18] = EM_X86_64;
	bytes[EI_DATA] = ELFDATA2MSB;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, "big-endian");
	bytes[EI_DATA] = ELFDATA2LSB;
	bytes[16] = ET_CORE;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, "core dump");
}

static void damage_is_told_with_its_place(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	struct kymo_module *module = NULL;
	Elf64_Phdr *segment;
	Elf64_Ehdr *header;

	header = (Elf64_Ehdr *)bytes;
	segment = (Elf64_Phdr *)(bytes + header->e_phoff);
	fails(open_bytes(bytes, 40, &module), KYMO_ERROR_BAD_DATA, "the file ends inside of the ELF header");
	fails(open_bytes(bytes, 100, &module), KYMO_ERROR_BAD_DATA,
	      "file: program header table lies beyond the end of the file (offset 0x40, size 0x");
	fails(open_bytes(bytes, size - 1, &module), KYMO_ERROR_BAD_DATA,
	      "file: section header table lies beyond the end of the file (offset 0x");
	segment[0].p_filesz += size;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, "segment 0 lies beyond the end of the file");
	segment[0].p_filesz -= size;
	segment[0].p_vaddr += 8;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, "cannot be mapped");
	segment[0].p_vaddr -= 8;
	segment[1].p_vaddr = 0;
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, "segment 1");
	assert_null(module);
}

static void section_0_is_no_string_table(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(bytes + header->e_shoff);
	struct kymo_module *module = NULL;
	char sentence[100];
	size_t i = 1;

	while (sections[i].sh_type != SHT_SYMTAB) {
		i++;
		assert_true(i < header->e_shnum);
	}
	sections[0].sh_type = SHT_STRTAB;
	sections[0].sh_offset = 1ull << 40;
	sections[0].sh_size = 1;
	sections[i].sh_link = 0;
	snprintf(sentence, sizeof(sentence), "file: the string table of section %zu is damaged (section 0)", i);
	fails(open_bytes(bytes, size, &module), KYMO_ERROR_BAD_DATA, sentence);
	assert_null(module);
}

static void a_file_cut_at_any_length_is_an_error(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	struct kymo_module *module = NULL;

	for (size_t cut = 0; cut < size; cut += cut < 1024 ? 1 : 7)
		fails(open_bytes(bytes, cut, &module), KYMO_ERROR_BAD_DATA, "file");
	assert_null(module);
	succeeds(open_bytes(bytes, size, &module));
	kymo_module_close(module);
}

/* Cut files without section headers get further. */
static void a_cut_file_without_sections_does_no_harm(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;

	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	for (size_t cut = 64; cut < size; cut += 13) {
		Elf64_Phdr *segment = (Elf64_Phdr *)(bytes + header->e_phoff);
		kymo_cleanup_free uint8_t *copy = malloc(cut);
		struct kymo_module *module;
		struct kymo_error *error;

		memcpy(copy, bytes, cut);
		for (int i = 0; i < header->e_phnum && (uint8_t *)(segment + i + 1) <= bytes + cut; i++) {
			Elf64_Phdr *mine = (Elf64_Phdr *)(copy + header->e_phoff) + i;

			if (mine->p_type == PT_LOAD && mine->p_offset + mine->p_filesz > cut)
				mine->p_filesz = mine->p_offset < cut ? cut - mine->p_offset : 0;
		}
		error = open_bytes(copy, cut, &module);
		kymo_error_destroy(error);
		if (error)
			continue;
		ask_everything(module);
		kymo_module_close(module);
	}
}

static void changed_bytes_do_no_harm(void **state)
{
	size_t size, n_opened = 0;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	kymo_cleanup_free uint8_t *copy = malloc(size);
	uint64_t random = 88172645463325252ull;

	for (int round = 0; round < 3000; round++) {
		struct kymo_module *module;
		struct kymo_error *error;

		memcpy(copy, bytes, size);
		for (int i = 0; i <= round % 8; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			/* Half of them in the headers. */
			copy[random % (i & 1 ? 1024 : size)] = (uint8_t)(random >> 40);
		}
		error = open_bytes(copy, size, &module);
		if (error) {
			assert_true(error->code == KYMO_ERROR_BAD_DATA || error->code == KYMO_ERROR_NO_MEMORY);
			kymo_error_destroy(error);
			continue;
		}
		n_opened++;
		ask_everything(module);
		kymo_module_close(module);
	}
	assert_true(n_opened > 100);
}

static void a_file_that_its_owner_truncates_stays_readable(void **state)
{
	struct kymo_module *module;
	const struct kymo_function *functions;
	const uint64_t *entries;
	size_t n;

	run("cp everything.so shrinking.so");
	module = open_module(in_directory("shrinking.so"));
	assert_int_equal(truncate(in_directory("shrinking.so"), 0), 0);
	succeeds(kymo_module_functions(module, &functions, &n));
	assert_true(n > 4);
	succeeds(kymo_module_entries(module, &entries, &n));
	assert_true(n > 4);
	kymo_module_close(module);
}

/* Whether only section headers lead to an address: a local symbol, or the start of a section. */
static bool needs_sections(const struct kymo_module *module, uint64_t vaddr)
{
	size_t n;
	const struct kymo_symbol *symbols = kymo_module_symbols(module, &n);
	const struct kymo_section *sections;

	for (size_t i = 0; i < n; i++)
		if (symbols[i].vaddr == vaddr)
			return !symbols[i].is_global;
	sections = kymo_module_sections(module, &n);
	for (size_t i = 0; i < n; i++)
		if (sections[i].vaddr == vaddr)
			return true;
	return false;
}

static void without_section_headers_segments_take_their_place(void **state)
{
	size_t size, n_with, n_without;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything.so"), &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	struct kymo_module *with, *without;
	const struct kymo_section *sections;
	const struct kymo_function *functions;
	const uint64_t *entries;

	succeeds(open_bytes(bytes, size, &with));
	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	succeeds(open_bytes(bytes, size, &without));
	sections = kymo_module_sections(without, &n_without);
	assert_int_equal(n_without, 2);
	assert_true(sections[0].executable && !sections[0].writable);
	assert_true(sections[1].writable && !sections[1].executable);
	succeeds(kymo_module_entries(with, &entries, &n_with));
	for (size_t i = 0; i < n_with; i++)
		assert_true(has_entry(without, entries[i]) || needs_sections(with, entries[i]));
	succeeds(kymo_module_functions(with, &functions, &n_with));
	for (size_t i = 0; i < n_with; i++) {
		const struct kymo_function *same = kymo_module_function_at(without, functions[i].start);

		/* Local symbols are gone, but .eh_frame is not. */
		if (same) {
			assert_int_equal(same->start, functions[i].start);
			assert_int_equal(same->end, functions[i].end);
		}
	}
	assert_string_equal(kymo_module_soname(without), "libeverything.so.1");
	assert_non_null(kymo_module_build_id(without, &n_without));
	assert_int_equal(n_without, 20);
	kymo_module_close(with);
	kymo_module_close(without);
}

static void symbols_come_from_separate_debug_information(void **state)
{
	const struct kymo_symbol **found;
	struct kymo_module *module;
	size_t n;

	run("gcc -g -Wl,--build-id=none -O1 -shared -fPIC -x c++ everything.cc -o linked.so && objcopy "
	    "--only-keep-debug linked.so linked.debug && "
	    "strip linked.so && objcopy --add-gnu-debuglink=linked.debug linked.so");
	module = open_module(in_directory("linked.so"));
	succeeds(kymo_module_find(module, "_ZL5inneri", &found, &n));
	assert_int_equal(n, 1);
	assert_false(found[0]->is_global);
	free(found);
	kymo_module_close(module);

	/* Another file in its place has another checksum. */
	run("echo >>linked.debug");
	module = open_module(in_directory("linked.so"));
	succeeds(kymo_module_find(module, "_ZL5inneri", &found, &n));
	assert_int_equal(n, 0);
	free(found);
	kymo_module_close(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_build_id_is_that_of_readelf),
		cmocka_unit_test(segments_and_sections_are_those_of_readelf),
		cmocka_unit_test(names_of_itself_are_known),
		cmocka_unit_test(what_is_no_program_is_refused_with_a_sentence),
		cmocka_unit_test(other_architectures_are_named),
		cmocka_unit_test(damage_is_told_with_its_place),
		cmocka_unit_test(section_0_is_no_string_table),
		cmocka_unit_test(a_file_cut_at_any_length_is_an_error),
		cmocka_unit_test(a_cut_file_without_sections_does_no_harm),
		cmocka_unit_test(changed_bytes_do_no_harm),
		cmocka_unit_test(a_file_that_its_owner_truncates_stays_readable),
		cmocka_unit_test(without_section_headers_segments_take_their_place),
		cmocka_unit_test(symbols_come_from_separate_debug_information),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
