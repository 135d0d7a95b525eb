/* Reading packets: numbers, bytes, ids, and where each of them ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gdb/text.h"
#include "gdb/words.h"

static struct gdb_words words(const char *text)
{
	return (struct gdb_words){ text, text + strlen(text) };
}

static void numbers_fit_or_are_refused(void **state)
{
	struct gdb_words at = words("ffffffffffffffff,10000000000000000,");
	uint64_t value;

	assert_true(gdb_take_number(&at, &value));
	assert_true(value == UINT64_MAX);
	assert_true(gdb_take_char(&at, ','));
	assert_false(gdb_take_number(&at, &value));
	at = words("x");
	assert_false(gdb_take_number(&at, &value));
	at = words("");
	assert_false(gdb_take_number(&at, &value));
}

static void ints_are_not_negative(void **state)
{
	struct gdb_words at = words("7fffffff");
	int value;

	assert_true(gdb_take_int(&at, &value));
	assert_int_equal(value, INT32_MAX);
	at = words("80000000");
	assert_false(gdb_take_int(&at, &value));
	assert_int_equal(gdb_words_left(&at), 8);
}

static void bytes_come_in_pairs(void **state)
{
	struct gdb_words at = words("00ff1");
	uint8_t bytes[3] = { 9, 9, 9 };

	assert_false(gdb_take_hex(&at, bytes, 3));
	assert_int_equal(bytes[0], 9);
	assert_true(gdb_take_hex(&at, bytes, 2));
	assert_int_equal(bytes[0], 0);
	assert_int_equal(bytes[1], 0xff);
	at = words("0g");
	assert_false(gdb_take_hex(&at, bytes, 1));
	assert_false(gdb_take_hex(&at, bytes, SIZE_MAX));
}

static void strings_have_an_end(void **state)
{
	struct gdb_words at = words("6162;");
	char text[3];

	assert_true(gdb_take_hex_string(&at, text, sizeof(text)));
	assert_string_equal(text, "ab");
	assert_true(gdb_take_char(&at, ';'));
	at = words("616263");
	assert_false(gdb_take_hex_string(&at, text, sizeof(text)));
	at = words("610062");
	assert_false(gdb_take_hex_string(&at, text, sizeof(text)));
}

static void ids_are_of_threads_processes_or_all(void **state)
{
	static const struct {
		const char *text;
		pid_t pid, tid;
	} good[] = { { "1f", 0, 0x1f },  { "-1", 0, -1 }, { "0", 0, 0 },    { "p2.3", 2, 3 },
		     { "p2.-1", 2, -1 }, { "p2", 2, -1 }, { "p-1", -1, -1 } };
	static const char *const wrong[] = { "", "p", "p.", "-2", "px", "p1.", "p99999999" };
	struct gdb_id id;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct gdb_words at = words(good[i].text);

		assert_true(gdb_take_id(&at, &id));
		assert_true(gdb_words_are_over(&at));
		assert_int_equal(id.pid, good[i].pid);
		assert_int_equal(id.tid, good[i].tid);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gdb_words at = words(wrong[i]);

		assert_false(gdb_take_id(&at, &id));
		assert_int_equal(gdb_words_left(&at), strlen(wrong[i]));
	}
}

static void words_end_where_they_say(void **state)
{
	struct gdb_words at = words("a;;b"), one;

	one = gdb_take_until(&at, ';');
	assert_int_equal(gdb_words_left(&one), 1);
	one = gdb_take_until(&at, ';');
	assert_int_equal(gdb_words_left(&one), 0);
	one = gdb_take_until(&at, ';');
	assert_int_equal(gdb_words_left(&one), 1);
	assert_true(gdb_words_are_over(&at));
	one = gdb_take_until(&at, ';');
	assert_int_equal(gdb_words_left(&one), 0);
}

static void names_are_safe_in_xml(void **state)
{
	struct gdb_text text = { 0 };

	gdb_text_xml(&text, "a<b>&\"'\x01\xff");
	gdb_text_bytes(&text, "", 1);
	assert_string_equal(text.items, "a&lt;b&gt;&amp;&quot;&apos;??");
	gdb_text_clear(&text);
	gdb_text_xml(&text, "\xc3\xb6 \xe2\x82\xac \xf0\x9f\x98\x80"); /* of two, three and four bytes */
	gdb_text_bytes(&text, "", 1);
	assert_string_equal(text.items, "\xc3\xb6 \xe2\x82\xac \xf0\x9f\x98\x80");
	gdb_text_clear(&text);
	/* Too long a form, a surrogate, a part that is missing, one beyond the last, and an end in the middle. */
	gdb_text_xml(&text, "\xc0\xaf|\xed\xa0\x80|\xc3(|\xf4\x90\x80\x80|\xe2\x82");
	gdb_text_bytes(&text, "", 1);
	assert_string_equal(text.items, "\?\?|\?\?\?|\?(|\?\?\?\?|\?\?");
	gdb_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_fit_or_are_refused),
		cmocka_unit_test(ints_are_not_negative),
		cmocka_unit_test(bytes_come_in_pairs),
		cmocka_unit_test(strings_have_an_end),
		cmocka_unit_test(ids_are_of_threads_processes_or_all),
		cmocka_unit_test(words_end_where_they_say),
		cmocka_unit_test(names_are_safe_in_xml),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
