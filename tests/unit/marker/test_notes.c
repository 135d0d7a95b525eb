#include "marked.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "sym/notes.h"
#include "sym/open.h"

#include <elf.h>

#define FIELD(name) FIELD_##name
enum {
	FIELD(code) = 0,
	FIELD(target) = 4,
	FIELD(gate) = 8,
	FIELD(types) = 12,
	FIELD(name) = 16,
	FIELD(format) = 20,
	FIELD(file) = 24,
	FIELD(line) = 28,
	FIELD(provider) = 32
};

/* One site and one place, as include/kymo/marker.h makes them, and their SDT probe. */
static const char base[] = "	.text\n"
			   "site:	five\n"
			   "	ret\n"
			   "cold:	nop\n"
			   "place:	five\n"
			   "	ret\n"
			   "	.data\n"
			   "	.balign 8\n"
			   "slots:	.8byte 0, 0, 0, 0\n"
			   "gate:	.4byte 0\n"
			   "	.section .rodata\n"
			   "operands: .asciz \"8@%r9 8@%rbx\"\n"
			   "	kymo open, 1, site-., cold-., gate-., 0x31, \"fd=%d size=%ld\"\n"
			   "	kymo open, 2, place-., slots-., operands-., 0x31, \"fd=%d size=%ld\"\n"
			   "	sdt open, site, 0, \"\"\n";

static int build(void **state)
{
	return build_base(state, base);
}

static void a_marker_and_its_switch_are_found(void **state)
{
	struct kymo_marker_list *list = markers_in("base");
	const struct kymo_marker *marker = &list->items[0];

	assert_int_equal(list->n, 1);
	assert_false(marker->is_sdt);
	assert_string_equal(marker->provider, "app");
	assert_string_equal(marker->name, "open");
	assert_string_equal(marker->format, "fd=%d size=%ld");
	assert_string_equal(marker->file, "marked.c");
	assert_int_equal(marker->line, 7);
	assert_int_equal(marker->location, address_of("base", "place"));
	assert_int_equal(marker->semaphore, 0);
	assert_null(marker->why_not);
	assert_string_equal(fields_text(marker), "fd:s32 size:s64");
	assert_int_equal(list->n_switches, 1);
	assert_string_equal(list->switches[0].provider, "app");
	assert_string_equal(list->switches[0].name, "open");
	assert_int_equal(list->switches[0].site, address_of("base", "site"));
	assert_int_equal(list->switches[0].cold, address_of("base", "cold"));
	assert_int_equal(list->switches[0].gate, address_of("base", "gate"));
	kymo_markers_destroy(list);
}

static void operands_say_in_which_registers_the_arguments_are(void **state)
{
	struct kymo_marker_list *list = markers_in("base");
	const struct kymo_marker *marker = &list->items[0];

	assert_int_equal(marker->n_fetches, 2);
	assert_int_equal(marker->fetches[0].kind, KYMO_FETCH_REGISTER);
	assert_int_equal(marker->fetches[0].value, 9);
	assert_int_equal(marker->fetches[0].type, KYMO_TYPE_S32);
	assert_int_equal(marker->fetches[1].value, 3);
	assert_int_equal(marker->fetches[1].type, KYMO_TYPE_S64);
	kymo_markers_destroy(list);
}

/* Formats with the types that the compiler has seen, and the fields that come of them. */
static const struct {
	const char *name, *types, *format, *fields;
} formats[] = {
	{ "f00", "0", " ", "" },
	{ "f01", "0x1", "%d", "arg1:s32" },
	{ "f02", "0x71", "fd=%d path=%s", "fd:s32 path:string" },
	{ "f03", "0x4321", "a=%d, b=%u; c=%ld / d=%zu", "a:s32 b:u32 c:s64 d:u64" },
	{ "f04", "0x4321", "%x %X %lx %#lx", "arg1:x32 arg2:x32 arg3:x64 arg4:x64" },
	{ "f05", "0x865", "p=%p f=%f q=%p", "p:x64 f:f64 q:x32" },
	{ "f06", "0x21", "flags=0x%08x mode=%o", "flags:x32 mode:u32" },
	{ "f07", "0x7", "path='%s'", "path:string" },
	{ "f08", "0x1", "req->fd = %d", "fd:s32" },
	{ "f09", "0x11", "100%% of %d, left=%d", "arg1:s32 left:s32" },
	{ "f10", "0x111", "n=%d n=%d n=%d", "n:s32 arg2:s32 arg3:s32" },
	{ "f11", "0x11", "arg2=%d %d", "arg2:s32 arg2_:s32" },
	{ "f12", "0x121", "%*d", "arg1:s32 arg2:u32 arg3:s32" },
	{ "f13", "0x11", "w=%*d", "arg1:s32 w:s32" },
	{ "f14", "0x11", "2nd=%d x.y_1=%d", "arg1:s32 y_1:s32" },
	{ "f15", "0x11", "b=%2$x a=%1$x", "arg1:s32 arg2:s32" },
	{ "f16", "0x11", "only=%d", "only:s32 arg2:s32" },
	{ "f17", "0x1", "a=%d b=%d", "a:s32" },
	{ "f18", "0x1", "a>=%d", "arg1:s32" },
	{ "f19", "0x1", "e=%m a=%d", "a:s32" },
	{ "f20", "0x1", "ends in %", "arg1:s32" },
	{ "f21", "0x11111111", "%d%d%d%d%d%d%d%d",
	  "arg1:s32 arg2:s32 arg3:s32 arg4:s32 arg5:s32 arg6:s32 arg7:s32 arg8:s32" },
	{ "f22", "0x1", "gr\303\266\303\237e=%d", "arg1:s32" },
	{ "f23", "0x16", "a=%x b=%-+5.3hhx", "a:f64 b:x32" },
	{ "f24", "0x1", "a234567890123456789012345678901234567890123456789012345678901234=%d", "arg1:s32" },
	{ "f25", "0x1", "b23456789012345678901234567890123456789012345678901234567890123=%d",
	  "b23456789012345678901234567890123456789012345678901234567890123:s32" },
};

static void formats_name_the_fields(void **state)
{
	char code[16384];
	int n = snprintf(code, sizeof(code), "	.text\nplace: five\n	ret\n");
	struct kymo_marker_list *list;

	for (size_t i = 0; i < kymo_countof(formats); i++)
		n += snprintf(code + n, sizeof(code) - (size_t)n, "	kymo %s, 2, place-., 0, 0, %s, \"%s\"\n",
			      formats[i].name, formats[i].types, formats[i].format);
	assemble("formats", code);
	list = markers_in("formats");
	assert_int_equal(list->n, kymo_countof(formats));
	for (size_t i = 0; i < kymo_countof(formats); i++) {
		const struct kymo_marker *marker = find_marker(list, formats[i].name);

		assert_string_equal(marker->format, formats[i].format);
		assert_string_equal(fields_text(marker), formats[i].fields);
	}
	kymo_markers_destroy(list);
}

static void with_a_string_all_arguments_come_as_one_payload(void **state)
{
	struct kymo_marker_list *list = markers_in("formats");
	const struct kymo_marker *marker = find_marker(list, "f02");

	assert_int_equal(marker->n_fields, 2);
	assert_int_equal(marker->n_fetches, 1);
	assert_int_equal(marker->fetches[0].kind, KYMO_FETCH_PAYLOAD);
	assert_int_equal(marker->fetches[0].type, KYMO_TYPE_STRING);
	assert_int_equal(marker->fetches[0].value, 10);
	assert_int_equal(marker->fetches[0].index, 11);
	kymo_markers_destroy(list);
}

static void without_operands_the_registers_are_those_of_a_call_and_two_more(void **state)
{
	static const int64_t numbers[] = { 7, 6, 2, 1, 8, 9, 10, 11 };
	struct kymo_marker_list *list = markers_in("formats");
	const struct kymo_marker *marker = find_marker(list, "f21");

	assert_int_equal(marker->n_fetches, 8);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(marker->fetches[i].kind, KYMO_FETCH_REGISTER);
		assert_int_equal(marker->fetches[i].value, numbers[i]);
	}
	kymo_markers_destroy(list);
}

static void copies_are_sorted_by_name_and_place(void **state)
{
	struct kymo_marker_list *list;

	assemble("copies", "	.text\none: five\ntwo: five\nthree: five\ncold: five\n"
			   "	.data\ngate: .4byte 0, 0, 0\n"
			   "	kymo b, 1, three-., cold-., gate-., 0, \"\"\n"
			   "	kymo b, 1, one-., cold-., gate+4-., 0, \"\"\n"
			   "	kymo a, 1, two-., cold-., gate+8-., 0, \"\"\n"
			   "	kymo b, 2, two-., 0, 0, 0x1, \"%d\"\n"
			   "	kymo b, 2, one-., 0, 0, 0, \"\"\n"
			   "	kymo a, 2, three-., 0, 0, 0, \"\"\n");
	list = markers_in("copies");
	assert_int_equal(list->n, 3);
	assert_string_equal(list->items[0].name, "a");
	assert_int_equal(list->items[1].location, address_of("copies", "one"));
	assert_int_equal(list->items[2].location, address_of("copies", "two"));
	assert_int_equal(list->n_switches, 3);
	assert_string_equal(list->switches[0].name, "a");
	assert_int_equal(list->switches[1].site, address_of("copies", "one"));
	assert_true(list->switches[1].site < list->switches[2].site);
	kymo_markers_destroy(list);
}

static void the_portable_form_has_a_gate_and_no_site(void **state)
{
	struct kymo_marker_list *list;

	assemble("portable",
		 "	.text\nsite: nop\n	nop\n	nop\n	nop\nplace: five\n	ret\n	.data\ngate: .4byte 0\n"
		 "	kymo tick, 1, 0, place-., gate-., 0, \"\"\n"
		 "	kymo tick, 2, place-., 0, 0, 0, \"\"\n"
		 "	sdt tick, site, 0, \"\"\n"
		 "	sdt tock, site, 0, \"\"\n");
	list = markers_in("portable");
	assert_int_equal(list->n_switches, 1);
	assert_int_equal(list->switches[0].site, 0);
	assert_int_equal(list->n, 2);
	assert_string_equal(list->items[0].name, "tick");
	assert_false(list->items[0].is_sdt);
	assert_string_equal(list->items[1].name, "tock");
	kymo_markers_destroy(list);
}

static void a_site_is_no_sdt_probe_of_somebody_else(void **state)
{
	struct kymo_marker_list *list;

	assemble("twins", "	.text\nsite: five\nother: five\ncold: five\n	.data\ngate: .4byte 0\n"
			  "	kymo tick, 1, site-., cold-., gate-., 0, \"\"\n"
			  "	sdt tick, site, 0, \"\"\n"
			  "	sdt tick, other, 0, \"\"\n");
	list = markers_in("twins");
	assert_int_equal(list->n, 1);
	assert_true(list->items[0].is_sdt);
	kymo_markers_destroy(list);
}

static void notes_of_other_types_and_owners_are_passed_over(void **state)
{
	struct kymo_marker_list *list;

	assemble("others", "	.section .note.kymo, \"a\", @note\n"
			   "	note kymo, 3\n4:\n"
			   "	note KYMO, 1\n4:\n"
			   "	note stapsdt, 2\n	.4byte 1\n4:\n"
			   "	.balign 4\n	.4byte 0, 0, 0\n"
			   "	.4byte 3, 0, 1\n	.ascii \"kym\\0\"\n");
	list = markers_in("others");
	assert_int_equal(list->n, 0);
	assert_int_equal(list->n_switches, 0);
	kymo_markers_destroy(list);
}

static void without_section_headers_the_segments_have_the_notes(void **state)
{
	size_t size;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("base"), &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	struct kymo_marker_list *list;
	struct kymo_module *module;

	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	succeeds(open_bytes(bytes, size, &module));
	list = markers_of(module);
	kymo_module_close(module);
	assert_int_equal(list->n, 1);
	assert_string_equal(list->items[0].name, "open");
	kymo_markers_destroy(list);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* The sentence of base with one word of one note changed: of the site's (0) or the place's (1). */
static void damaged(size_t note, size_t field, uint32_t value, const char *sentence)
{
	size_t size, at;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("base"), &size);

	at = descriptor_of(bytes, size, "kymo", note);
	memcpy(bytes + at + field, &value, sizeof(value));
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, sentence);
}

/* What a field has to be so that it leads to `to`. */
static uint32_t towards(size_t note, size_t field, uint64_t to)
{
	struct kymo_module *module = open_module(in_directory("base"));
	const struct kymo_note *notes;
	uint64_t vaddr = 0;
	size_t n;

	succeeds(kymo_module_notes(module, &notes, &n));
	for (size_t i = 0; i < n; i++)
		if (!strcmp(notes[i].owner, "kymo") && !note--)
			vaddr = notes[i].vaddr;
	kymo_module_close(module);
	assert_true(vaddr != 0);
	return (uint32_t)(to - (vaddr + field));
}

static void addresses_outside_of_their_segments_are_errors(void **state)
{
	uint64_t gate = address_of("base", "gate"), site = address_of("base", "site");

	damaged(0, FIELD(code), towards(0, FIELD(code), gate), "is not in the program's text");
	damaged(0, FIELD(code), 0x7fffffff, "file: marker 'open' (note at offset 0x");
	damaged(0, FIELD(code), 0x80000000, "): its site 0x");
	damaged(0, FIELD(code), towards(0, FIELD(code), site + 1), "is not the NOP of five bytes that a marker has");
	damaged(0, FIELD(target), 0x12345678, "): its cold block 0x");
	damaged(0, FIELD(target), 0, "): its cold block 0x0 is not in the program's text");
	damaged(0, FIELD(gate), towards(0, FIELD(gate), site), "is not in the program's data");
	damaged(0, FIELD(gate), 0, "): its gate 0x0 is not in the program's data");
	damaged(1, FIELD(code), towards(1, FIELD(code), gate), "): its location 0x");
	damaged(1, FIELD(code), towards(1, FIELD(code), site + 5), "is not the NOP of five bytes");
	damaged(1, FIELD(code), 0, "): its location 0x0 is not in the program's text");
	damaged(1, FIELD(target), towards(1, FIELD(target), site), "): its slots 0x");
	/* The gate is what the data ends with. */
	damaged(1, FIELD(target), towards(1, FIELD(target), gate), "are not in the program's data");
	damaged(0, FIELD(gate), towards(0, FIELD(gate), gate + 1), "is not in the program's data");
}

static void strings_outside_of_the_file_are_errors(void **state)
{
	uint64_t site = address_of("base", "site");

	damaged(0, FIELD(name), 0x7fffffff, "file: a marker (note at offset 0x");
	damaged(0, FIELD(name), 0x7fffffff, "): its name at 0x");
	damaged(1, FIELD(name), 0, "): it has no name");
	damaged(1, FIELD(name), towards(1, FIELD(name), site + 3), "): it has no name");
	damaged(1, FIELD(format), 0x80000000, "): its format at 0x");
	damaged(1, FIELD(file), 0x70000000, "): its source file's name at 0x");
	damaged(1, FIELD(provider), 0x70000000, "): its provider at 0x");
	damaged(1, FIELD(provider), towards(1, FIELD(provider), site + 3), "): its provider has no name");
	damaged(1, FIELD(gate), 0x70000000, "): its operands at 0x");
}

static void types_and_operands_that_are_none_are_errors(void **state)
{
	damaged(1, FIELD(types), 0x9, "the types of its arguments, 0x9, are no types");
	damaged(1, FIELD(types), 0xf0000001, "are no types");
	damaged(1, FIELD(types), 0x10, "the types of its arguments, 0x10, are no types");
	damaged(1, FIELD(types), 0x111, "it has 3 arguments and 2 operands");
	damaged(1, FIELD(gate), towards(1, FIELD(gate), address_of("base", "site") + 3),
		"it has 2 arguments and 0 operands");
}

static void operands_have_to_be_whole_registers(void **state)
{
	static const char *const bad[] = { "4@%eax", "8@$5", "8@(%rax)", "8@%xmm0", "rax" };

	for (size_t i = 0; i < kymo_countof(bad); i++) {
		char code[512], sentence[100];
		struct kymo_module *module;
		struct kymo_marker_list *list;

		snprintf(code, sizeof(code),
			 "	.text\nplace: five\n	.section .rodata\nbad: .asciz \"%s\"\n"
			 "	kymo x, 2, place-., 0, bad-., 0x1, \"\"\n",
			 bad[i]);
		assemble("bad", code);
		snprintf(sentence, sizeof(sentence), "its operand '%s' is no register of 64 bits", bad[i]);
		module = open_module(in_directory("bad"));
		fails(kymo_markers_create(module, &list), KYMO_ERROR_BAD_DATA, sentence);
		kymo_module_close(module);
	}
}

static void too_long_formats_cost_their_marker_alone(void **state)
{
	struct kymo_marker_list *list = NULL;
	struct kymo_module *module;

	assemble("long", "	.text\nplace: five\n	.section .rodata\n"
			 "	.section .note.kymo, \"a\", @note\n	note kymo, 2\n"
			 "	.4byte place-.\n	.4byte 0, 0, 0\n	.4byte name-.\n	.4byte format-.\n"
			 "	.4byte 0, 0, 0\n4:\n"
			 "	.section .rodata\nname: .asciz \"x\"\nformat: .space 1024, 'a'\n	.byte 0\n");
	module = open_module(in_directory("long"));
	assert_null(kymo_markers_create(module, &list));
	assert_string_equal(list->items[0].why_not, "its format is longer than 1,023 bytes");
	kymo_markers_destroy(list);
	kymo_module_close(module);
	run("sed -i 's/1024/1023/' long.s && gcc -nostdlib -shared long.s -o long");
	list = markers_in("long");
	assert_int_equal(strlen(list->items[0].format), 1023);
	assert_string_equal(list->items[0].provider, "kymo");
	assert_null(list->items[0].file);
	kymo_markers_destroy(list);
}

static void a_note_that_is_not_whole_is_an_error(void **state)
{
	size_t size, at;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("base"), &size);

	at = descriptor_of(bytes, size, "kymo", 1);
	/* The header stands before the owner: its second word is the descriptor's size. */
	bytes[at - 16] = 35;
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "it has 35 bytes instead of 36");
	bytes[at - 16] = 200;
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "file: the notes are damaged (vaddr 0x");
	bytes[at - 16] = 36;
	assert_null(read_markers(bytes, size));
	memset(bytes + at - 20, 0xff, 4);
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "file: the notes are damaged (vaddr 0x");
}

static void a_note_that_is_not_loaded_is_an_error(void **state)
{
	struct kymo_marker_list *list;
	struct kymo_module *module;

	assemble("unloaded", "	.section .note.kymo, \"\", @note\n	note kymo, 2\n	.space 36\n4:\n");
	module = open_module(in_directory("unloaded"));
	fails(kymo_markers_create(module, &list), KYMO_ERROR_BAD_DATA, "it lies in no segment");
	/* It is told again. */
	fails(kymo_markers_create(module, &list), KYMO_ERROR_BAD_DATA, "it lies in no segment");
	kymo_module_close(module);
}

static void there_is_a_limit_of_markers(void **state)
{
	struct kymo_marker_list *list;
	struct kymo_module *module;

	assemble("many", "	.text\nplace: five\n	.section .note.stapsdt, \"\", @note\n"
			 "	.rept 131072\n	.4byte 8, 32, 3\n	.asciz \"stapsdt\"\n	.8byte place, 0, 0\n"
			 "	.asciz \"p\"\n	.asciz \"n\"\n	.4byte 0\n	.endr\n");
	list = markers_in("many");
	assert_int_equal(list->n, 131072);
	kymo_markers_destroy(list);
	run("sed -i 's/131072/131073/' many.s && gcc -nostdlib -shared many.s -o many");
	module = open_module(in_directory("many"));
	fails(kymo_markers_create(module, &list), KYMO_ERROR_BAD_DATA, "has more than 131072 markers");
	kymo_module_close(module);
}

static void changed_bytes_do_no_harm(void **state)
{
	size_t size, site, n_read = 0;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("base"), &size);
	kymo_cleanup_free uint8_t *copy = malloc(size);
	uint64_t random = 88172645463325252ull;

	site = descriptor_of(bytes, size, "kymo", 0) - 20;
	for (int round = 0; round < 3000; round++) {
		struct kymo_error *error;

		memcpy(copy, bytes, size);
		for (int i = 0; i <= round % 4; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[site + random % 120] = (uint8_t)(random >> 40);
		}
		error = read_markers(copy, size);
		n_read += !error;
		assert_true(!error || error->code == KYMO_ERROR_BAD_DATA);
		kymo_error_destroy(error);
	}
	assert_true(n_read > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_marker_and_its_switch_are_found),
		cmocka_unit_test(operands_say_in_which_registers_the_arguments_are),
		cmocka_unit_test(formats_name_the_fields),
		cmocka_unit_test(with_a_string_all_arguments_come_as_one_payload),
		cmocka_unit_test(without_operands_the_registers_are_those_of_a_call_and_two_more),
		cmocka_unit_test(copies_are_sorted_by_name_and_place),
		cmocka_unit_test(the_portable_form_has_a_gate_and_no_site),
		cmocka_unit_test(a_site_is_no_sdt_probe_of_somebody_else),
		cmocka_unit_test(notes_of_other_types_and_owners_are_passed_over),
		cmocka_unit_test(without_section_headers_the_segments_have_the_notes),
		cmocka_unit_test(addresses_outside_of_their_segments_are_errors),
		cmocka_unit_test(strings_outside_of_the_file_are_errors),
		cmocka_unit_test(types_and_operands_that_are_none_are_errors),
		cmocka_unit_test(operands_have_to_be_whole_registers),
		cmocka_unit_test(too_long_formats_cost_their_marker_alone),
		cmocka_unit_test(a_note_that_is_not_whole_is_an_error),
		cmocka_unit_test(a_note_that_is_not_loaded_is_an_error),
		cmocka_unit_test(there_is_a_limit_of_markers),
		cmocka_unit_test(changed_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
