#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/panel.h"

#define ACUTE "\xcc\x81" /* U+0301, which takes no column */

static const struct page wide = { .width = 80, .unicode = true }, plain = { .width = 80 };

/* The labels of values that have the names, in the order of the values from `first` on. */
static void panel_of(struct panel *panel, const struct page *page, const char *const *names, size_t n, int64_t first)
{
	struct kymo_naming *naming = kymo_naming_create();
	struct stats stats = { .is_signed = true };

	assert_non_null(naming);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(kymo_naming_add(naming, names[i], strlen(names[i]), first + (int64_t)i), 0);
		for (size_t k = i; k < n; k++) /* the first is the most frequent */
			kymo_stats_add(&stats, (uint64_t)first + i);
	}
	kymo_panel_init_names(panel, page, "state", &stats, naming, 0, "");
	assert_int_equal(panel->n_rows, n);
	for (size_t i = 0; i < n; i++)
		assert_true(memchr(panel->rows[i].label, '\0', TEXT_NUMBER));
	kymo_naming_release(naming);
}

static void assert_label(const struct page *page, const char *name, int64_t value, const char *expected)
{
	struct panel panel;

	panel_of(&panel, page, &name, 1, value);
	assert_string_equal(panel.rows[0].label, expected);
}

static void a_name_stands_whole_where_a_row_has_room(void **state)
{
	assert_label(&wide, "BUSY", 1, "BUSY");
	assert_label(&wide, "TWENTY_FOUR_COLUMNS_WIDE", 1, "TWENTY_FOUR_COLUMNS_WIDE");
	assert_label(&wide, "e" ACUTE "tat", 1, "e" ACUTE "tat");
	assert_label(&plain, "e" ACUTE, 1, "e\\xcc\\x81");
	assert_label(&wide, ACUTE, -1, "-1");
}

static void names_that_begin_alike_are_told_apart(void **state)
{
	static const char *const names[] = { "NETWORK_PROTOCOL_VERSION_1", "NETWORK_PROTOCOL_VERSION_2" };
	struct panel panel;

	panel_of(&panel, &wide, names, 2, 1);
	assert_string_equal(panel.rows[0].label, "NETWORK_PROTOCOL_VERS… 1");
	assert_string_equal(panel.rows[1].label, "NETWORK_PROTOCOL_VERS… 2");
	assert_int_equal(panel.label_columns, 24);
	panel_of(&panel, &plain, names, 2, -1000);
	assert_string_equal(panel.rows[0].label, "NETWORK_PROTOC... -1,000");
	assert_string_equal(panel.rows[1].label, "NETWORK_PROTOCOL... -999");
	assert_int_equal(panel.label_columns, 24);
	panel_of(&panel, &wide, names, 1, INT64_MIN);
	assert_string_equal(panel.rows[0].label, "-9,223,372,036,854,775,808");
}

static void characters_without_columns_are_cut_by_bytes(void **state)
{
	static const size_t counts[] = { 24, 25, 127, 1, 22, 23 };
	static const char *const before[] = { "", "a" };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		for (size_t k = 0; k < 2; k++) {
			char name[KYMO_NAMING_NAME_MAX + 1], expected[TEXT_NUMBER];
			size_t marks = counts[i];
			const bool is_whole = strlen(before[k]) + 2 * marks < TEXT_NUMBER;

			strcpy(name, before[k]);
			for (size_t n = 0; n < counts[i]; n++)
				strcat(name, ACUTE);
			if (!is_whole) /* "… 7" */
				marks = (TEXT_NUMBER - 1 - 5 - strlen(before[k])) / 2;
			snprintf(expected, sizeof(expected), "%.*s%s", (int)(strlen(before[k]) + 2 * marks), name,
				 is_whole ? "" : "… 7");
			assert_label(&wide, name, 7, *before[k] ? expected : "7"); /* marks alone are not seen */
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_stands_whole_where_a_row_has_room),
		cmocka_unit_test(names_that_begin_alike_are_told_apart),
		cmocka_unit_test(characters_without_columns_are_cut_by_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
