#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

static void all_code_points_but_surrogates_are_read_back(void **state)
{
	for (int32_t point = 0; point <= 0x10ffff; point++) {
		const bool is_surrogate = point >= 0xd800 && point < 0xe000;
		char bytes[4];
		size_t n = 0, size;

		if (point < 0x80) {
			bytes[n++] = (char)point;
		} else if (point < 0x800) {
			bytes[n++] = (char)(0xc0 | point >> 6);
			bytes[n++] = (char)(0x80 | (point & 0x3f));
		} else {
			if (point < 0x10000) {
				bytes[n++] = (char)(0xe0 | point >> 12);
			} else {
				bytes[n++] = (char)(0xf0 | point >> 18);
				bytes[n++] = (char)(0x80 | (point >> 12 & 0x3f));
			}
			bytes[n++] = (char)(0x80 | (point >> 6 & 0x3f));
			bytes[n++] = (char)(0x80 | (point & 0x3f));
		}
		assert_int_equal(kymo_utf8_decode(bytes, n, &size), is_surrogate ? -1 : point);
		assert_int_equal(size, is_surrogate ? 1 : n);
		for (size_t cut = 1; cut < n; cut++) {
			assert_int_equal(kymo_utf8_decode(bytes, cut, &size), -1);
			assert_int_equal(size, 1);
		}
	}
}

static void overlong_forms_and_stray_bytes_are_none(void **state)
{
	static const char *const wrong[] = { "\x80",
					     "\xbf",
					     "\xc0\x80",
					     "\xc1\xbf",
					     "\xe0\x9f\xbf",
					     "\xf0\x8f\xbf\xbf",
					     "\xf4\x90\x80\x80",
					     "\xf8\x88\x80\x80\x80",
					     "\xff",
					     "\xe2\x82",
					     "\xc3(" };

	for (size_t i = 0; i < kymo_countof(wrong); i++) {
		size_t size = 0;

		assert_int_equal(kymo_utf8_decode(wrong[i], SIZE_MAX, &size), -1);
		assert_int_equal(size, 1);
	}
}

static void what_changes_how_others_are_shown_is_hidden(void **state)
{
	static const int32_t hidden[] = { 0, 0x1b, 0x7f, 0x9b, 0xad, 0x200b, 0x202e, 0x2066, 0xfeff, 0xe0041 },
			     shown[] = { ' ', '~', 0xa0, 0xe9, 0x20ac, 0x4e00, 0x1f600 };

	for (size_t i = 0; i < kymo_countof(hidden); i++)
		assert_true(kymo_utf8_is_hidden(hidden[i]));
	for (size_t i = 0; i < kymo_countof(shown); i++)
		assert_false(kymo_utf8_is_hidden(shown[i]));
}

static void characters_are_counted_and_not_cut(void **state)
{
	const char *text = "a\xc3\xa9\xe2\x82\xac\xff"; /* of one, two and three bytes, and none */
	static const size_t cuts[] = { 0, 1, 1, 3, 3, 3, 6 };

	assert_int_equal(kymo_utf8_count(text, 7), 4);
	assert_int_equal(kymo_utf8_count(text, 0), 0);
	assert_int_equal(kymo_utf8_count(text, 2), 2); /* a beginning is no character */
	for (size_t n = 0; n < kymo_countof(cuts); n++)
		assert_int_equal(kymo_utf8_cut(text, n), cuts[n]);
	assert_int_equal(kymo_utf8_cut("\x80\x80\x80", 2), 0);
}

static void check_json(const char *bytes, size_t n, const char *expected)
{
	kymo_cleanup_free char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	kymo_json_bytes(out, bytes, n);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
}

static void a_json_string_has_its_characters_and_no_bytes_or_escapes_of_a_terminal(void **state)
{
	check_json("", 0, "\"\"");
	check_json("a\"b\\c/\n\x1b\x7f", 9, "\"a\\\"b\\\\c/\\u000a\\u001b\\u007f\"");
	check_json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	check_json("\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81", 9, "\"\\u009b\\u202e\\udb40\\udc41\"");
	check_json("\xff\xc3", 2, "\"\\ufffd\\ufffd\"");
	check_json("a\0b", 3, "\"a\\u0000b\"");
}

static void no_string_is_null(void **state)
{
	kymo_cleanup_free char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	kymo_json_string(out, NULL);
	kymo_json_string(out, "x");
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "null\"x\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_code_points_but_surrogates_are_read_back),
		cmocka_unit_test(overlong_forms_and_stray_bytes_are_none),
		cmocka_unit_test(what_changes_how_others_are_shown_is_hidden),
		cmocka_unit_test(characters_are_counted_and_not_cut),
		cmocka_unit_test(a_json_string_has_its_characters_and_no_bytes_or_escapes_of_a_terminal),
		cmocka_unit_test(no_string_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
