#include "marked.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "sym/module.h"
#include "sym/open.h"

static const char base[] = "	.text\n"
			   "	nop\n"
			   "place:	nop\n"
			   "	ret\n"
			   "	.section .probes, \"aw\"\n"
			   "semaphore: .2byte 0\n"
			   "	sdt two, place, semaphore, \"-4@%eax 8@8(%rsp)\"\n";

static int build(void **state)
{
	return build_base(state, base);
}

static void a_probe_is_found_with_its_arguments(void **state)
{
	struct kymo_marker_list *list = markers_in("base");
	const struct kymo_marker *marker = &list->items[0];

	assert_int_equal(list->n, 1);
	assert_int_equal(list->n_switches, 0);
	assert_true(marker->is_sdt);
	assert_string_equal(marker->provider, "app");
	assert_string_equal(marker->name, "two");
	assert_null(marker->format);
	assert_null(marker->file);
	assert_null(marker->why_not);
	assert_int_equal(marker->location, address_of("base", "place"));
	assert_int_equal(marker->semaphore, address_of("base", "semaphore"));
	assert_string_equal(fields_text(marker), "arg1:s32 arg2:u64");
	assert_int_equal(marker->n_fetches, 2);
	assert_int_equal(marker->fetches[0].kind, KYMO_FETCH_REGISTER);
	assert_int_equal(marker->fetches[1].kind, KYMO_FETCH_MEMORY);
	kymo_markers_destroy(list);
}

/* As prelink moves a file: what is loaded moves, and .stapsdt.base with it, the note's addresses stay. */
static void a_file_that_was_moved_is_adjusted_by_its_base(void **state)
{
	size_t size, at;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("base"), &size);
	struct kymo_marker_list *list;
	struct kymo_module *module;

	at = descriptor_of(bytes, size, "stapsdt", 0);
	for (size_t i = 0; i < 3; i++) {
		uint64_t address;

		memcpy(&address, bytes + at + 8 * i, sizeof(address));
		address -= 0x12345000;
		memcpy(bytes + at + 8 * i, &address, sizeof(address));
	}
	succeeds(open_bytes(bytes, size, &module));
	list = markers_of(module);
	assert_int_equal(list->items[0].location, address_of("base", "place"));
	assert_int_equal(list->items[0].semaphore, address_of("base", "semaphore"));
	kymo_markers_destroy(list);
	kymo_module_close(module);
	/* Without a base nothing is known to have moved. */
	memset(bytes + at + 8, 0, 8);
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "is not in the program's text");
}

static void what_cannot_be_recorded_is_listed_with_the_reason(void **state)
{
	struct kymo_marker_list *list;
	const struct kymo_marker *marker;

	assemble("refused",
		 "	.text\nplace: nop\n"
		 "	sdt vector, place, 0, \"4@%eax 8@%ymm1 8f@%rax 4f@%rax\"\n"
		 "	sdt float, place, 0, \"8f@%rax\"\n"
		 "	sdt tls, place, 0, \"4@%fs:x@tpoff\"\n"
		 "	sdt unknown, place, 0, \"4@nobody(%rip)\"\n"
		 "	sdt nine, place, 0, \"1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@$8 1@$9\"\n"
		 "	sdt twelve, place, 0, \"1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@what 1@$9 1@$10 1@$11 1@$12\"\n"
		 "	sdt long, place, 0, "
		 "\"8@a23456789012345678901234567890123456789012345678901234567890123456789\"\n"
		 "	sdt eight, place, 0, \"1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@$8\"\n");
	list = markers_in("refused");
	assert_int_equal(list->n, 8);
	marker = find_marker(list, "vector");
	assert_string_equal(marker->why_not, "its 2nd argument '8@%ymm1' is of no kind that kymo records");
	assert_string_equal(fields_text(marker), "arg1:u32 arg2:u64 arg3:f64 arg4:f32");
	assert_int_equal(marker->n_fetches, 0);
	assert_string_equal(find_marker(list, "float")->why_not,
			    "its 1st argument '8f@%rax' is of no kind that kymo records");
	assert_string_equal(find_marker(list, "tls")->why_not,
			    "its 1st argument '4@%fs:x@tpoff' is thread-local, which kymo does not record");
	assert_string_equal(find_marker(list, "unknown")->why_not,
			    "its 1st argument '4@nobody(%rip)' names a symbol that the file does not have");
	assert_string_equal(find_marker(list, "nine")->why_not, "it has 9 arguments; kymo records at most 8");
	assert_string_equal(find_marker(list, "twelve")->why_not,
			    "its 8th argument '1@what' is of no kind that kymo records");
	assert_string_equal(
		find_marker(list, "long")->why_not,
		"its 1st argument '8@a234567890123456789012345678901234567890123456789012345678...' is of no kind "
		"that kymo records");
	assert_null(find_marker(list, "eight")->why_not);
	assert_int_equal(find_marker(list, "eight")->n_fetches, 8);
	kymo_markers_destroy(list);
}

static void blanks_part_arguments_but_not_within_parentheses(void **state)
{
	struct kymo_marker_list *list;

	assemble("blanks", "	.text\nplace: nop\n	sdt a, place, 0, \"  4@%eax   8@(%rax, %rbx)	-1@%cl  \"\n");
	list = markers_in("blanks");
	assert_int_equal(list->items[0].n_fields, 3);
	kymo_markers_destroy(list);
}

static void probes_of_functions_that_were_dropped_are_passed_over(void **state)
{
	struct kymo_marker_list *list;

	assemble("dropped", "	.text\nplace: nop\n	sdt a, 0, 0, \"\"\n	sdt b, place, 0, \"\"\n");
	list = markers_in("dropped");
	assert_int_equal(list->n, 1);
	assert_string_equal(list->items[0].name, "b");
	kymo_markers_destroy(list);
}

static void damage_is_told_with_its_place(void **state)
{
	size_t size, at;
	kymo_cleanup_free uint8_t *bytes = read_bytes(in_directory("base"), &size);
	uint8_t *desc, *header;
	uint64_t semaphore = address_of("base", "semaphore"), place = address_of("base", "place");

	at = descriptor_of(bytes, size, "stapsdt", 0);
	desc = bytes + at;
	header = desc - 20;
	memcpy(desc, &semaphore, 8);
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "file: marker 'two' (note at offset 0x");
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "): its location 0x");
	memcpy(desc, &place, 8);
	memcpy(desc + 16, &place, 8);
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "): its semaphore 0x");
	semaphore++;
	memcpy(desc + 16, &semaphore, 8);
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "is not in the program's data");
	semaphore--;
	memcpy(desc + 16, &semaphore, 8);
	assert_null(read_markers(bytes, size));

	header[4] -= 1;
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "): its strings do not end within it");
	header[5] = 1;
	fails(read_markers(bytes, size), KYMO_ERROR_BAD_DATA, "runs out of its section");
}

static void strings_that_are_not_there_are_errors(void **state)
{
	struct kymo_marker_list *list;
	struct kymo_module *module;
	static const struct {
		const char *strings, *sentence;
	} cases[] = {
		{ "", "its strings do not end within it" },
		{ ".ascii \"a\"", "its strings do not end within it" },
		{ ".asciz \"a\"", "its strings do not end within it" },
		{ ".asciz \"a\", \"b\"\n .ascii \"8@%rax\"", "its strings do not end within it" },
		{ ".asciz \"a\", \"b\", \"\"\n4: .balign 4\n note stapsdt, 3\n .space 20",
		  "it has 20 bytes; an SDT probe has more than 24" },
		{ ".asciz \"\", \"b\", \"\"", "it has no name" },
		{ ".asciz \"a\", \"\", \"\"", "it has no name" },
		{ ".asciz \"a\"\n .space 256, 'x'\n .byte 0, 0", "its name is longer than 255 bytes" },
	};

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		char code[512];

		snprintf(code, sizeof(code),
			 "	.text\nplace: nop\n	.section .note.stapsdt, \"\", @note\n	note stapsdt, 3\n"
			 "	.8byte place, 0, 0\n	%s\n4:\n",
			 cases[i].strings);
		assemble("names", code);
		module = open_module(in_directory("names"));
		fails(kymo_markers_create(module, &list), KYMO_ERROR_BAD_DATA, cases[i].sentence);
		kymo_module_close(module);
	}
}

static void probes_of_installed_programs_are_those_of_readelf(void **state)
{
	struct kymo_module *module = open_named("libstdc++");
	struct kymo_marker_list *list = markers_of(module);
	char line[1000], name[200] = "";
	unsigned long long place;
	size_t n = 0;
	FILE *lines = lines_of("readelf -n '%s'", kymo_module_path(module));

	while (fgets(line, sizeof(line), lines)) {
		bool there = false;

		sscanf(line, " Name: %199s", name);
		if (sscanf(line, " Location: %llx", &place) != 1)
			continue;
		n++;
		for (size_t i = 0; i < list->n; i++)
			there |= list->items[i].location == place && !strcmp(list->items[i].name, name);
		assert_true(there);
	}
	pclose(lines);
	assert_int_equal(n, list->n);
	assert_true(n >= 3);
	kymo_markers_destroy(list);
	kymo_module_close(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_probe_is_found_with_its_arguments),
		cmocka_unit_test(a_file_that_was_moved_is_adjusted_by_its_base),
		cmocka_unit_test(what_cannot_be_recorded_is_listed_with_the_reason),
		cmocka_unit_test(blanks_part_arguments_but_not_within_parentheses),
		cmocka_unit_test(probes_of_functions_that_were_dropped_are_passed_over),
		cmocka_unit_test(damage_is_told_with_its_place),
		cmocka_unit_test(strings_that_are_not_there_are_errors),
		cmocka_unit_test(probes_of_installed_programs_are_those_of_readelf),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
