#include "testing.h"
#include "sym/perfmap.h"
#include "sym/perftable.h"

#include <errno.h>
#include <sys/mman.h>

static int map_of(const char *text, size_t size)
{
	int fd = memfd_create("perfmap", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	return fd;
}

static int find(const char *text, uint64_t address, struct kymo_perf_function *ret)
{
	int fd = map_of(text, strlen(text)), r = kymo_perf_map_find(fd, address, ret);

	close(fd);
	return r;
}

static void a_line_is_start_size_and_name(void **state)
{
	static const char line[] = "7f3c00001000 a0 JS:*fib /srv/app.js:1:13";
	struct kymo_perf_function function;

	assert_true(kymo_perf_map_parse(line, strlen(line), &function));
	assert_true(function.start == 0x7f3c00001000);
	assert_true(function.size == 0xa0);
	assert_string_equal(function.name, "JS:*fib /srv/app.js:1:13");
	assert_true(kymo_perf_map_parse("0xF 0x1 f", 9, &function));
	assert_true(function.start == 15 && function.size == 1);
}

static void what_is_none_is_told(void **state)
{
	static const char *const lines[] = { "",
					     " ",
					     "1",
					     "1 2",
					     "1 2 ",
					     "1 0 f",
					     "x 2 f",
					     "1 x f",
					     "1  2 f",
					     "-1 2 f",
					     "11111111111111111 2 f",
					     "ffffffffffffffff 2 f",
					     "0x 2 f",
					     "1\t2\tf" };
	struct kymo_perf_function function = { .size = 7 };

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (kymo_perf_map_parse(lines[i], strlen(lines[i]), &function))
			fail_msg("'%s' is taken for a line", lines[i]);
	assert_int_equal(function.size, 7);
}

static void names_are_made_printable_and_cut_between_characters(void **state)
{
	char line[1000] = "1 2 ";
	struct kymo_perf_function function;

	assert_true(kymo_perf_map_parse("1 2 a\033\177\r\xc3\xa4\xff\xc3z", 13, &function));
	assert_string_equal(function.name, "a???\xc3\xa4??z");
	for (size_t i = 4; i < 998; i += 2)
		memcpy(line + i, "\xc3\xa4", 2);
	assert_true(kymo_perf_map_parse(line, 998, &function));
	assert_int_equal(strlen(function.name), 198);
	assert_memory_equal(function.name + 196, "\xc3\xa4", 2);
}

static void the_last_line_that_has_the_address_counts(void **state)
{
	static const char map[] = "1000 10 old\n1000 20 new\n1020 10 next\n1000 10 unfinished";
	struct kymo_perf_function function;

	assert_int_equal(find(map, 0x100f, &function), 0);
	assert_string_equal(function.name, "new");
	assert_int_equal(find(map, 0x1020, &function), 0);
	assert_string_equal(function.name, "next");
	assert_int_equal(find(map, 0x1030, &function), -ENOENT);
	assert_int_equal(find(map, 0xfff, &function), -ENOENT);
	assert_int_equal(find("", 0x1000, &function), -ENOENT);
}

static void long_maps_and_lines_are_read_to_their_end(void **state)
{
	size_t size = 3 << 20, at = 0;
	char *text = malloc(size);
	struct kymo_perf_function function;
	int fd;

	assert_non_null(text);
	for (size_t i = 0; i < 40000; i++)
		at += (size_t)sprintf(text + at, "%zx 10 function_%zu\n", (i + 1) * 16, i);
	memset(text + at, 'x', 1 << 20);
	at += 1 << 20;
	at += (size_t)sprintf(text + at, "\n%x 10 behind\n", 0xa000000);
	fd = map_of(text, at);
	assert_int_equal(kymo_perf_map_find(fd, 39999 * 16 + 5, &function), 0);
	assert_string_equal(function.name, "function_39998");
	assert_int_equal(kymo_perf_map_find(fd, 0xa000001, &function), 0);
	assert_string_equal(function.name, "behind");
	close(fd);
	free(text);
}

/* ---- a table of all lines ------------------------------------------------------------------ */

static const char *name_at(const struct kymo_perf_table *table, uint64_t address, uint64_t start)
{
	uint64_t found = 0;
	const char *name = kymo_perf_table_at(table, address, &found);

	assert_true(!name || found == start);
	return name ? name : "none";
}

static void a_table_follows_a_map_that_grows(void **state)
{
	static const char first[] = "1000 100 a\n2000 10 b\n3000 20 c",
			  rest[] = "c\nno line\n1010 10 new\n2000 8 short\n";
	const int fd = map_of(first, strlen(first));
	struct kymo_perf_table *table = kymo_perf_table_create(dup(fd));
	uint64_t start;

	assert_non_null(table);
	assert_null(kymo_perf_table_at(table, 0x1000, &start));
	assert_true(kymo_perf_table_read(table));
	assert_false(kymo_perf_table_read(table));
	assert_string_equal(name_at(table, 0x10ff, 0x1000), "a");
	assert_string_equal(name_at(table, 0x1100, 0), "none");
	assert_string_equal(name_at(table, 0x3000, 0), "none"); /* that line has no end yet */
	assert_int_equal(write(fd, rest, strlen(rest)), strlen(rest));
	assert_true(kymo_perf_table_read(table));
	assert_string_equal(name_at(table, 0x3000, 0x3000), "cc");
	assert_string_equal(name_at(table, 0x100f, 0x1000), "a");
	assert_string_equal(name_at(table, 0x1010, 0x1010), "new");
	assert_string_equal(name_at(table, 0x1020, 0x1000), "a");
	assert_string_equal(name_at(table, 0x2007, 0x2000), "short");
	assert_string_equal(name_at(table, 0x2008, 0x2000), "b");
	assert_string_equal(name_at(table, 0, 0), "none");
	assert_string_equal(name_at(table, UINT64_MAX, 0), "none");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "2000 10 anew\n", 13, 0), 13);
	assert_true(kymo_perf_table_read(table));
	assert_string_equal(name_at(table, 0x2000, 0x2000), "anew");
	assert_string_equal(name_at(table, 0x1000, 0), "none");
	assert_int_equal(pwrite(fd, "2000 10 same\n3000 10 more\n", 26, 0), 26);
	assert_true(kymo_perf_table_read(table));
	assert_string_equal(name_at(table, 0x2000, 0x2000), "same");
	assert_string_equal(name_at(table, 0x3000, 0x3000), "more");
	kymo_perf_table_destroy(table);
	close(fd);
}

#define SPACE 256

/* Random functions in a small space, read in parts: at each address is the one that came last. */
static void the_last_of_functions_that_overlap_counts(void **state)
{
	unsigned int seed = 1;

	for (int round = 0; round < 200; round++) {
		const int fd = memfd_create("perfmap", MFD_CLOEXEC);
		struct kymo_perf_table *table = kymo_perf_table_create(dup(fd));
		int last[SPACE] = { 0 }, starts[64] = { 0 };

		for (int i = 1; i < 64; i++) {
			const int start = rand_r(&seed) % SPACE, size = 1 + rand_r(&seed) % (SPACE - start);

			assert_true(dprintf(fd, "%x %x f%d\n", start, size, i) > 0);
			starts[i] = start;
			for (int k = start; k < start + size; k++)
				last[k] = i;
			if (rand_r(&seed) % 4 && i < 63)
				continue;
			kymo_perf_table_read(table);
			for (int k = 0; k < SPACE; k++) {
				char name[16] = "none";

				if (last[k])
					snprintf(name, sizeof(name), "f%d", last[k]);
				assert_string_equal(name_at(table, (uint64_t)k, (uint64_t)starts[last[k]]), name);
			}
		}
		kymo_perf_table_destroy(table);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_start_size_and_name),
		cmocka_unit_test(what_is_none_is_told),
		cmocka_unit_test(names_are_made_printable_and_cut_between_characters),
		cmocka_unit_test(the_last_line_that_has_the_address_counts),
		cmocka_unit_test(long_maps_and_lines_are_read_to_their_end),
		cmocka_unit_test(a_table_follows_a_map_that_grows),
		cmocka_unit_test(the_last_of_functions_that_overlap_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
