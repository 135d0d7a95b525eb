/* Notes of a loaded module: what is read of good ones, and that damaged ones are refused. The module is an array whose
 * program headers say what its parts are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "modules.h"
#include "registry.h"

#define TEXT_AT 0
#define COLD_AT 256
#define DATA_AT 512
#define STRINGS_AT 1024
#define NOTES_AT 1536
#define SIZE 4096

#define NAME_AT STRINGS_AT
#define FORMAT_AT (STRINGS_AT + 16)
#define FILE_AT (STRINGS_AT + 32)
#define PROVIDER_AT (STRINGS_AT + 48)
#define OTHER_NAME_AT (STRINGS_AT + 64)

static _Alignas(64) unsigned char image[SIZE];
static ElfW(Phdr) phdrs[5];
static size_t notes_end;

static void put32(size_t at, uint32_t value)
{
	memcpy(image + at, &value, sizeof(value));
}

/* A self-relative field; 0 stays 0. */
static void point(size_t field, size_t target)
{
	put32(field, target ? (uint32_t)(target - field) : 0);
}

/* Returns where its description begins. */
static size_t add_note(uint32_t kind, size_t code, size_t target, size_t gate, uint32_t types)
{
	size_t at = notes_end, desc = at + 20;

	put32(at, 5);
	put32(at + 4, sizeof(struct kymo_marker_note));
	put32(at + 8, kind);
	memcpy(image + at + 12, "kymo\0\0\0", 8);
	point(desc, code);
	point(desc + 4, target);
	point(desc + 8, gate);
	put32(desc + 12, types);
	point(desc + 16, NAME_AT);
	point(desc + 20, FORMAT_AT);
	point(desc + 24, FILE_AT);
	put32(desc + 28, 77);
	point(desc + 32, PROVIDER_AT);
	notes_end = desc + sizeof(struct kymo_marker_note);
	phdrs[4].p_memsz = phdrs[4].p_filesz = notes_end - NOTES_AT;
	return desc;
}

static size_t site, location;

static int begin(void **state)
{
	static const ElfW(Phdr) fresh[5] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = TEXT_AT, .p_memsz = DATA_AT - TEXT_AT },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = DATA_AT, .p_memsz = STRINGS_AT - DATA_AT },
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = STRINGS_AT, .p_memsz = SIZE - STRINGS_AT },
		{ .p_type = PT_GNU_RELRO, .p_vaddr = DATA_AT, .p_memsz = 64 },
		{ .p_type = PT_NOTE, .p_flags = PF_R, .p_vaddr = NOTES_AT, .p_align = 4 },
	};

	memcpy(phdrs, fresh, sizeof(phdrs));
	memset(image, 0, sizeof(image));
	memcpy(image + NAME_AT, "name", 5);
	memcpy(image + FORMAT_AT, "%d", 3);
	memcpy(image + FILE_AT, "file.c", 7);
	memcpy(image + PROVIDER_AT, "kymo", 5);
	notes_end = NOTES_AT;
	site = add_note(KYMO_MARKER_NOTE_SITE, 16, COLD_AT, DATA_AT + 64, 1);
	location = add_note(KYMO_MARKER_NOTE_LOCATION, COLD_AT + 16, DATA_AT + 128, STRINGS_AT, 1);
	return 0;
}

static struct lib_found found(void)
{
	return (struct lib_found){ (ElfW(Addr))(uintptr_t)image, phdrs, 5 };
}

static int read_all(void)
{
	struct lib_found where = found();
	struct lib_module *module = NULL;
	int status = kymo_lib_read_module(&where, &module);

	assert_true(status == 0 || module == NULL);
	kymo_lib_destroy_module(module);
	return status;
}

static void good_notes_become_a_marker(void **state)
{
	struct lib_found where = found();
	struct lib_module *module;

	add_note(KYMO_MARKER_NOTE_SITE, 32, COLD_AT, DATA_AT + 68, 1);
	add_note(KYMO_MARKER_NOTE_SITE, 48, COLD_AT, DATA_AT + 72, 0x21);
	assert_true(kymo_lib_has_notes(&where));
	assert_int_equal(kymo_lib_read_module(&where, &module), 0);
	assert_int_equal(module->n_markers, 2);
	assert_int_equal(module->n_sites, 3);
	assert_int_equal(module->n_locations, 1);
	const struct lib_marker *marker = &module->markers[0];
	assert_string_equal(marker->name, "name");
	assert_string_equal(marker->format, "%d");
	assert_string_equal(marker->file, "file.c");
	assert_string_equal(marker->provider, "kymo");
	assert_int_equal(marker->line, 77);
	assert_int_equal(marker->n_sites, 2);
	assert_int_equal(marker->n_locations, 1);
	assert_ptr_equal(marker->sites[0].text, image + 16);
	assert_ptr_equal(marker->sites[0].cold, image + COLD_AT);
	assert_ptr_equal(marker->sites[1].gate, image + DATA_AT + 68);
	assert_ptr_equal(marker->locations[0].slots, image + DATA_AT + 128);
	assert_int_equal(module->markers[1].types, 0x21);
	assert_int_equal(module->markers[1].n_locations, 0);
	assert_int_equal(module->begin, (uintptr_t)image);
	assert_int_equal(module->end, (uintptr_t)image + SIZE);
	kymo_lib_destroy_module(module);
}

static void check_named(const char *name, const struct lib_marker *first, const struct lib_marker *second)
{
	struct lib_named at = { .name = name };

	assert_ptr_equal(kymo_lib_next_named(&at), first);
	if (first)
		assert_ptr_equal(kymo_lib_next_named(&at), second);
	if (second)
		assert_null(kymo_lib_next_named(&at));
}

static void markers_are_found_by_name_in_their_order(void **state)
{
	struct lib_registry before = kymo_lib_registry;
	struct lib_found where = found();
	struct lib_module *module;

	memcpy(image + OTHER_NAME_AT, "nam", 4);
	point(add_note(KYMO_MARKER_NOTE_SITE, 32, COLD_AT, DATA_AT + 68, 1) + 16, OTHER_NAME_AT);
	add_note(KYMO_MARKER_NOTE_SITE, 48, COLD_AT, DATA_AT + 72, 0x21);
	assert_int_equal(kymo_lib_read_module(&where, &module), 0);
	assert_int_equal(module->n_markers, 3);
	module->is_program = true;
	kymo_lib_registry = (struct lib_registry){ &module, 1 };
	check_named("name", &module->markers[1], &module->markers[2]);
	check_named("nam", &module->markers[0], NULL);
	check_named("", NULL, NULL);
	check_named("name_", NULL, NULL);
	module->is_program = false; /* may not be touched: nor are its strings */
	check_named("nam", NULL, NULL);
	kymo_lib_registry = before;
	kymo_lib_destroy_module(module);
}

static void a_module_without_notes_has_none(void **state)
{
	struct lib_found where = found();

	phdrs[4].p_memsz = 0;
	assert_false(kymo_lib_has_notes(&where));
	assert_int_equal(read_all(), -ENOENT);
	begin(state);
	phdrs[4].p_type = PT_NULL;
	assert_int_equal(read_all(), -ENOENT);
}

static void notes_of_others_are_passed_over(void **state)
{
	memcpy(image + NOTES_AT + 12, "KYMO", 4);
	assert_int_equal(read_all(), 0);
	begin(state);
	put32(NOTES_AT + 8, 3); /* of a later version */
	put32(site + 16, 0x7fffffff);
	assert_int_equal(read_all(), 0);
}

static void a_section_that_ends_too_early_is_refused(void **state)
{
	for (size_t size = 1; size < notes_end - NOTES_AT; size++) {
		phdrs[4].p_memsz = size;
		if (size != 56) /* one whole note */
			assert_int_equal(read_all(), -EBADMSG);
	}
	begin(state);
	phdrs[4].p_memsz = SIZE; /* leaves its segment */
	assert_int_equal(read_all(), -ENOENT);
}

static void sizes_that_lie_are_refused(void **state)
{
	static const uint32_t sizes[] = { 0xffffffff, 0xfffffffc, 0x80000000, 200, 113 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		begin(state);
		put32(NOTES_AT, sizes[i]);
		assert_int_equal(read_all(), -EBADMSG);
		begin(state);
		put32(NOTES_AT + 4, sizes[i]);
		assert_int_equal(read_all(), -EBADMSG);
	}
	begin(state);
	put32(NOTES_AT + 4, 32); /* a description that lacks its last field; the next note begins in it */
	assert_int_equal(read_all(), -EBADMSG);
}

/* `field` of the description at `desc` points to `target`. */
static void check_refused(size_t *desc, size_t field, size_t target)
{
	begin(NULL);
	point(*desc + field, target);
	assert_int_equal(read_all(), -EBADMSG);
}

static void addresses_outside_of_their_segments_are_refused(void **state)
{
	static const size_t texts[] = { DATA_AT, DATA_AT - 4, STRINGS_AT, SIZE, SIZE + 4096, (size_t)-4 };
	static const size_t data[] = { COLD_AT,    DATA_AT,        DATA_AT + 61, DATA_AT + 63,
				       STRINGS_AT, STRINGS_AT - 3, SIZE,         (size_t)-4 };
	static const size_t strings[] = { 0, SIZE, SIZE + 4096, (size_t)-4 };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		check_refused(&site, 0, texts[i]);
		if (texts[i] != DATA_AT - 4) /* the rest of the cold block is its own affair */
			check_refused(&site, 4, texts[i]);
		check_refused(&location, 0, texts[i]);
	}
	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
		check_refused(&site, 8, data[i]);
		check_refused(&location, 4, data[i]);
	}
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		for (size_t field = 16; field <= 32; field += field == 24 ? 8 : 4)
			check_refused(&site, field, strings[i]);
	}
	check_refused(&site, 4, 0);
	check_refused(&site, 8, 0);
	check_refused(&location, 4, 0);
	check_refused(&location, 4, DATA_AT + 132); /* not aligned */
}

static void strings_that_do_not_end_are_refused(void **state)
{
	memset(image + SIZE - 8, 'x', 8);
	for (size_t field = 16; field <= 24; field += 4) {
		point(site + field, SIZE - 8);
		assert_int_equal(read_all(), -EBADMSG);
		point(site + field, NAME_AT);
	}
	memset(image + 2048, 'n', 300); /* a name that is too long */
	point(site + 16, 2048);
	assert_int_equal(read_all(), -EBADMSG);
}

static void types_that_do_not_exist_are_refused(void **state)
{
	static const uint32_t types[] = { 9, 0xf, 0x10, 0x101, 0x90000000 };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		put32(site + 12, types[i]);
		assert_int_equal(read_all(), -EBADMSG);
	}
}

static void sites_gates_and_slots_that_overlap_are_refused(void **state)
{
	for (size_t distance = 0; distance < 5; distance++) {
		begin(state);
		add_note(KYMO_MARKER_NOTE_SITE, 16 + distance, COLD_AT, DATA_AT + 96, 1);
		assert_int_equal(read_all(), -EBADMSG);
	}
	for (size_t distance = 0; distance < 4; distance++) {
		begin(state);
		add_note(KYMO_MARKER_NOTE_SITE, 32, COLD_AT, DATA_AT + 64 + distance, 1);
		assert_int_equal(read_all(), -EBADMSG);
	}
	for (size_t distance = 8; distance < 32; distance += 8) {
		begin(state);
		add_note(KYMO_MARKER_NOTE_LOCATION, COLD_AT + 32, DATA_AT + 128 + distance, 0, 1);
		assert_int_equal(read_all(), -EBADMSG);
	}
}

static void copies_of_the_portable_form_share_a_gate(void **state)
{
	notes_end = NOTES_AT;
	add_note(KYMO_MARKER_NOTE_SITE, 0, 0, DATA_AT + 64, 1);
	add_note(KYMO_MARKER_NOTE_SITE, 0, 0, DATA_AT + 64, 1);
	add_note(KYMO_MARKER_NOTE_LOCATION, 0, DATA_AT + 128, 0, 1);
	add_note(KYMO_MARKER_NOTE_LOCATION, 0, DATA_AT + 128, 0, 1);
	assert_int_equal(read_all(), 0);
}

static void no_damage_of_one_byte_makes_it_crash(void **state)
{
	for (size_t at = NOTES_AT; at < notes_end; at++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			image[at] ^= (unsigned char)(1u << bit);
			read_all();
			image[at] ^= (unsigned char)(1u << bit);
		}
	}
	assert_int_equal(read_all(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(good_notes_become_a_marker, begin),
		cmocka_unit_test_setup(markers_are_found_by_name_in_their_order, begin),
		cmocka_unit_test_setup(a_module_without_notes_has_none, begin),
		cmocka_unit_test_setup(notes_of_others_are_passed_over, begin),
		cmocka_unit_test_setup(a_section_that_ends_too_early_is_refused, begin),
		cmocka_unit_test_setup(sizes_that_lie_are_refused, begin),
		cmocka_unit_test_setup(addresses_outside_of_their_segments_are_refused, begin),
		cmocka_unit_test_setup(strings_that_do_not_end_are_refused, begin),
		cmocka_unit_test_setup(types_that_do_not_exist_are_refused, begin),
		cmocka_unit_test_setup(sites_gates_and_slots_that_overlap_are_refused, begin),
		cmocka_unit_test_setup(copies_of_the_portable_form_share_a_gate, begin),
		cmocka_unit_test_setup(no_damage_of_one_byte_makes_it_crash, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
