#include "testing.h"
#include "sym/find.h"
#include "sym/module.h"
#include "sym/notes.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "sym/symbols.h"

#include <elf.h>

/* A note that is loaded and one that is not, names that are there twice, data that is code's neighbor. */
static const char everything[] =
	"	.text\n"
	"	.type code, @function\n"
	"code:	ret\n"
	"	.byte 1, 2, 3\n"
	"	.section .note.loaded, \"a\", @note\n"
	"	.4byte 5, 3, 77\n	.asciz \"mine\"\n	.balign 4\n	.ascii \"abc\"\n	.balign 4\n"
	"	.4byte 0, 0, 78\n"
	"	.section .note.other, \"\", @note\n"
	"	.4byte 4, 4, 1\n	.ascii \"GNUx\"\n	.4byte 5\n"
	"	.4byte 8, 0, 2\n	.asciz \"unended\"\n"
	"	.data\n"
	"	.type only, @object\n"
	"	.globl only\n"
	"only:	.asciz \"text\"\n"
	"	.type twin, @object\n"
	"twin:	.byte 1\n"
	"end:	.ascii \"no end\"\n";

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("everything.s", everything);
	write_file("twin.s", "	.data\n	.type twin, @object\ntwin: .byte 2\n");
	run("gcc -c everything.s && gcc -c twin.s && ld -shared twin.o everything.o -o everything");
	return 0;
}

static void notes_of_all_sections_are_given(void **state)
{
	struct kymo_module *module = open_module(in_directory("everything"));
	const struct kymo_note *notes;
	uint64_t vaddr;
	size_t n;

	succeeds(kymo_module_notes(module, &notes, &n));
	assert_int_equal(n, 4);
	assert_string_equal(notes[0].owner, "mine");
	assert_int_equal(notes[0].type, 77);
	assert_int_equal(notes[0].size, 3);
	assert_memory_equal(notes[0].desc, "abc", 3);
	assert_int_equal(kymo_module_offset_to_vaddr(module, notes[0].offset, &vaddr), 0);
	assert_int_equal(notes[0].vaddr, vaddr + 20);
	assert_string_equal(notes[1].owner, "");
	assert_int_equal(notes[1].type, 78);
	assert_int_equal(notes[1].size, 0);
	/* An owner that does not end in a NUL is none; what is not loaded has no address. */
	assert_string_equal(notes[2].owner, "");
	assert_int_equal(notes[2].size, 4);
	assert_int_equal(notes[2].vaddr, 0);
	assert_string_equal(notes[3].owner, "unended");
	kymo_module_close(module);
}

static void notes_are_those_of_readelf(void **state)
{
	static const char *const names[] = { "libc", "/usr/bin/python3", "libstdc++" };

	for (size_t i = 0; i < kymo_countof(names); i++) {
		struct kymo_module *module = open_named(names[i]);
		const struct kymo_note *notes;
		char line[1000], owner[100];
		unsigned long long size;
		size_t n, at = 0;
		FILE *lines = lines_of("readelf -nW '%s'", kymo_module_path(module));

		succeeds(kymo_module_notes(module, &notes, &n));
		while (fgets(line, sizeof(line), lines)) {
			if (sscanf(line, " %99s 0x%llx\t", owner, &size) != 2 || strchr(owner, ':'))
				continue;
			assert_true(at < n);
			assert_string_equal(notes[at].owner, owner);
			assert_int_equal(notes[at++].size, size);
		}
		pclose(lines);
		assert_int_equal(at, n);
		assert_true(n > 0);
		kymo_module_close(module);
	}
}

static void a_note_that_runs_out_of_its_section_is_an_error(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything"), &size);
	struct kymo_module *module = open_module(in_directory("everything"));
	const struct kymo_note *notes;
	size_t n, at;

	succeeds(kymo_module_notes(module, &notes, &n));
	at = notes[3].offset;
	kymo_module_close(module);
	bytes[at + 4] = 1;
	succeeds(open_bytes(bytes, size, &module));
	fails(kymo_module_notes(module, &notes, &n), KYMO_ERROR_BAD_DATA, "file: the note at offset 0x");
	/* And so it stays. */
	fails(kymo_module_notes(module, &notes, &n), KYMO_ERROR_BAD_DATA, "runs out of its section");
	kymo_module_close(module);
	bytes[at + 4] = 0;
	bytes[at] = 9;
	succeeds(open_bytes(bytes, size, &module));
	fails(kymo_module_notes(module, &notes, &n), KYMO_ERROR_BAD_DATA, "file: the note at offset 0x");
	kymo_module_close(module);
	memset(bytes + at, 0xff, 8);
	succeeds(open_bytes(bytes, size, &module));
	fails(kymo_module_notes(module, &notes, &n), KYMO_ERROR_BAD_DATA, "file: the note at offset 0x");
	kymo_module_close(module);
}

static void without_section_headers_the_segments_have_them(void **state)
{
	size_t size, n;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("everything"), &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	const struct kymo_note *notes;
	struct kymo_module *module;

	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	succeeds(open_bytes(bytes, size, &module));
	succeeds(kymo_module_notes(module, &notes, &n));
	assert_int_equal(n, 2);
	assert_string_equal(notes[0].owner, "mine");
	assert_int_equal(notes[1].type, 78);
	kymo_module_close(module);
}

static void an_object_is_found_where_its_name_is_the_only_one(void **state)
{
	struct kymo_module *module = open_module(in_directory("everything"));
	uint64_t vaddr, same, object_size;

	/* Before the objects are sorted, and after that. */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(kymo_module_only_object(module, "only", &vaddr), 0);
		assert_int_equal(kymo_module_find_object(module, "only", &same, &object_size), 0);
		assert_int_equal(vaddr, same);
		assert_int_equal(kymo_module_only_object(module, "twin", &vaddr), -ENOTUNIQ);
		assert_int_equal(kymo_module_only_object(module, "nobody", &vaddr), -ENOENT);
		assert_int_equal(kymo_module_only_object(module, "code", &vaddr), -ENOENT);
		assert_int_equal(kymo_module_only_object(module, "", &vaddr), -ENOENT);
	}
	kymo_module_close(module);
}

static void addresses_tell_what_they_are(void **state)
{
	struct kymo_module *module = open_module(in_directory("everything"));
	const struct kymo_symbol **found;
	const struct kymo_segment *segment;
	uint64_t only, code;
	size_t n;

	succeeds(kymo_module_find(module, "code", &found, &n));
	assert_int_equal(n, 1);
	code = found[0]->vaddr;
	free(found);
	assert_int_equal(kymo_module_only_object(module, "only", &only), 0);

	assert_true(kymo_module_is_code(module, code, 4));
	assert_false(kymo_module_is_code(module, code, 5));
	assert_false(kymo_module_is_code(module, only, 1));
	assert_false(kymo_module_is_code(module, UINT64_MAX, 4));
	assert_memory_equal(kymo_module_bytes(module, code, 4), "\xc3\1\2\3", 4);
	assert_null(kymo_module_bytes(module, code, 5));
	assert_null(kymo_module_bytes(module, UINT64_MAX - 1, 4));

	assert_string_equal(kymo_module_string(module, only, 5), "text");
	assert_null(kymo_module_string(module, only, 4));
	assert_string_equal(kymo_module_string(module, only + 4, 1), "");
	/* The data ends after it, without a NUL. */
	assert_null(kymo_module_string(module, only + 6, 100));
	assert_null(kymo_module_string(module, UINT64_MAX, 100));

	segment = kymo_module_segment_at(module, only);
	assert_true(segment && segment->writable && !segment->executable);
	segment = kymo_module_segment_at(module, code);
	assert_true(segment && segment->executable && !segment->writable);
	assert_null(kymo_module_segment_at(module, UINT64_MAX));
	kymo_module_close(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_of_all_sections_are_given),
		cmocka_unit_test(notes_are_those_of_readelf),
		cmocka_unit_test(a_note_that_runs_out_of_its_section_is_an_error),
		cmocka_unit_test(without_section_headers_the_segments_have_them),
		cmocka_unit_test(an_object_is_found_where_its_name_is_the_only_one),
		cmocka_unit_test(addresses_tell_what_they_are),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
