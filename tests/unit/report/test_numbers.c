#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "report/labels.h"
#include "report/losses.h"
#include "report/page.h"
#include "report/stats.h"
#include "report/text.h"

static void numbers_read_well(void **state)
{
	char b[TEXT_NUMBER];

	assert_string_equal(kymo_text_count(b, 0), "0");
	assert_string_equal(kymo_text_count(b, 999), "999");
	assert_string_equal(kymo_text_count(b, 1000), "1,000");
	assert_string_equal(kymo_text_count(b, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(kymo_text_signed(b, 1ull << 63, true), "-9,223,372,036,854,775,808");
	assert_string_equal(kymo_text_short(b, 0), "0");
	assert_string_equal(kymo_text_short(b, 0.25), "0.2");
	assert_string_equal(kymo_text_short(b, 9.96), "10");
	assert_string_equal(kymo_text_short(b, 999.4), "999");
	assert_string_equal(kymo_text_short(b, 999.6), "1.00k");
	assert_string_equal(kymo_text_short(b, 12345678), "12.3M");
	assert_string_equal(kymo_text_power(b, 9), "512");
	assert_string_equal(kymo_text_power(b, 10), "1K");
	assert_string_equal(kymo_text_power(b, 64), "16E");
	assert_string_equal(kymo_text_span(b, 999, true), "999ns");
	assert_string_equal(kymo_text_span(b, 1024, true), "1.0µs");
	assert_string_equal(kymo_text_span(b, 1024, false), "1.0us");
	assert_string_equal(kymo_text_span(b, 999499, true), "999µs");
	assert_string_equal(kymo_text_span(b, 999500, true), "1.0ms");
	assert_string_equal(kymo_text_span(b, UINT64_MAX, true), "18446744074s");
	assert_string_equal(kymo_text_seconds(b, 1999999999, 3), "1.999");
	assert_string_equal(kymo_text_seconds(b, 1999999999, 0), "1");
	assert_string_equal(kymo_text_seconds(b, -1, 9), "-0.000000001");
	assert_string_equal(kymo_text_seconds(b, -999999, 3), "0.000");
	assert_string_equal(kymo_text_seconds(b, -1000000, 3), "-0.001");
	assert_string_equal(kymo_text_seconds(b, INT64_MIN, 9), "-9223372036.854775808");
}

static void text_from_a_trace_is_harmless(void **state)
{
	static const struct {
		const char *text, *unicode, *ascii;
	} cases[] = {
		{ "plain \\ text", "plain \\ text", "plain \\ text" },
		{ "\x1b[31m\n\x7f", "\\x1b[31m\\x0a\\x7f", "\\x1b[31m\\x0a\\x7f" },
		{ "\xc3\xa9", "\xc3\xa9", "\\xc3\\xa9" },
		/* C1 control, overlong slash, surrogate, over U+10FFFF, cut off. */
		{ "\xc2\x9b", "\\xc2\\x9b", "\\xc2\\x9b" },
		{ "\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80" },
		{ "\xe2\x82", "\\xe2\\x82", "\\xe2\\x82" },
		/* Right to left override. */
		{ "\xe2\x80\xae", "\\xe2\\x80\\xae", "\\xe2\\x80\\xae" },
	};

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		kymo_cleanup_free char *unicode = kymo_text_escape(cases[i].text, true);
		kymo_cleanup_free char *ascii = kymo_text_escape(cases[i].text, false);

		assert_string_equal(unicode, cases[i].unicode);
		assert_string_equal(ascii, cases[i].ascii);
	}
}

static void columns_are_those_of_a_terminal(void **state)
{
	unsigned int columns;

	assert_int_equal(kymo_text_columns("abc"), 3);
	assert_int_equal(kymo_text_columns("\xc3\xa9"), 1);
	assert_int_equal(kymo_text_columns("e\xcc\x81"), 1);
	assert_int_equal(kymo_text_columns("\xe6\xbc\xa2"), 2);
	assert_int_equal(kymo_text_fit("a\xe6\xbc\xa2z", 2, &columns), 1);
	assert_int_equal(columns, 1);
	assert_int_equal(kymo_text_fit("a\xe6\xbc\xa2z", 3, &columns), 4);
	assert_int_equal(columns, 3);
}

static void each_value_falls_in_the_bucket_that_names_it(void **state)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 4, 7, 8, 1ull << 62, (1ull << 63) - 1, 1ull << 63, UINT64_MAX };

	for (int is_signed = 0; is_signed < 2; is_signed++) {
		for (size_t i = 0; i < kymo_countof(values) * 2; i++) {
			uint64_t value = i % 2 ? 0 - values[i / 2] : values[i / 2], low, high;
			struct stats stats = { .is_signed = is_signed };
			unsigned int first, last;

			kymo_stats_add(&stats, value);
			assert_true(kymo_stats_range(&stats, &first, &last));
			assert_int_equal(first, last);
			low = kymo_bucket_low(first);
			high = kymo_bucket_high(first);
			if (is_signed)
				assert_true((int64_t)low <= (int64_t)value && (int64_t)value <= (int64_t)high);
			else
				assert_true(low <= value && value <= high);
		}
	}
}

static void buckets_lie_side_by_side(void **state)
{
	for (unsigned int i = 0; i + 2 < N_BUCKETS; i++)
		assert_true(kymo_bucket_high(i) + 1 == kymo_bucket_low(i + 1));
	assert_true(kymo_bucket_low(0) == 1ull << 63);
	assert_true(kymo_bucket_high(N_BUCKETS - 1) == UINT64_MAX);
}

static void extremes_and_sums_have_a_sign(void **state)
{
	struct stats s = { .is_signed = true }, u = { .is_signed = false };

	for (int i = 0; i < 3; i++) {
		kymo_stats_add(&s, (uint64_t)(i - 1));
		kymo_stats_add(&u, (uint64_t)(i - 1));
	}
	assert_true(s.min == UINT64_MAX && s.max == 1 && s.sum == 0);
	assert_true(u.min == 0 && u.max == UINT64_MAX && u.sum == (__int128)UINT64_MAX + 1);
}

static void few_values_are_kept_and_many_are_not(void **state)
{
	struct stats stats = { 0 };

	for (uint64_t i = 0; i < MAX_DISTINCT * 3; i++)
		kymo_stats_add(&stats, i % MAX_DISTINCT % 5);
	assert_false(stats.many);
	assert_int_equal(stats.n_distinct, 5);
	kymo_stats_sort_distinct(&stats);
	assert_int_equal(stats.distinct[0].value, 0);
	assert_int_equal(stats.distinct[0].count, 6);
	for (uint64_t i = 0; i < MAX_DISTINCT; i++)
		kymo_stats_add(&stats, i);
	assert_false(stats.many);
	kymo_stats_add(&stats, MAX_DISTINCT);
	assert_true(stats.many);
}

static void more_of_those_with_names_are_kept(void **state)
{
	struct stats stats = { .has_names = true };

	for (uint64_t i = 0; i < MAX_NAMED; i++)
		kymo_stats_add(&stats, i);
	assert_false(stats.many);
	for (uint64_t i = 0; i < MAX_NAMED + 3; i++)
		kymo_stats_add(&stats, i);
	assert_true(stats.many);
	assert_int_equal(stats.n_others, 3);
	kymo_stats_sort_distinct(&stats);
	for (unsigned int i = 0; i < MAX_NAMED; i++)
		assert_true(stats.distinct[i].value == i && stats.distinct[i].count == 2);
}

static void near_losses_become_one_span(void **state)
{
	const struct kymo_ctf_loss losses[] = {
		{ 10, 20, 1, 0, 0 }, { 15, 18, 2, 0, 1 }, { 24, 30, 0, 3, 0 }, { 50, 60, 4, 0, 0 }, { 90, 95, 5, 0, 0 },
	};
	struct kymo_ctf_loss spans[2];
	struct loss_total total = kymo_losses_total(losses, 5);

	assert_int_equal(total.events, 12);
	assert_int_equal(total.packets, 3);
	assert_int_equal(kymo_losses_join(losses, 5, 5, spans, 2), 2);
	assert_int_equal(spans[0].begin, 10);
	assert_int_equal(spans[0].end, 30);
	assert_int_equal(spans[0].events, 3);
	assert_int_equal(spans[1].begin, 50);
	assert_int_equal(spans[1].end, 95);
	assert_int_equal(spans[1].events, 9);
}

static void assert_name(const char *name, unsigned int columns, const char *expected)
{
	unsigned int longest;
	char **labels = kymo_labels_create(&name, 1, columns, true, &longest);

	assert_non_null(labels);
	assert_string_equal(labels[0], expected);
	assert_int_equal(longest, kymo_text_columns(expected));
	kymo_labels_destroy(labels, 1);
}

static void names_of_places_keep_their_offsets_where_they_are_cut(void **state)
{
	assert_name("libz:inflate+0x1a2", 20, "libz:inflate+0x1a2");
	assert_name("libz:inflate+0x1a2", 18, "libz:inflate+0x1a2");
	assert_name("libz:inflate+0x1a2", 15, "inflate+0x1a2");
	assert_name("libz:inflate+0x1a2", 10, "i…te+0x1a2");
	assert_name("libz:inflate+0x1a2", 8, "i…+0x1a2");
	assert_name("libz:inflate%return", 13, "in…ate%return");
	assert_name("libz:inflate", 8, "inflate");
	assert_name("libz:inflate", 5, "in…te");
	assert_name("app:shop::Cart::add(int)", 20, "shop::Cart::add(int)");
	assert_name("shop::Cart::add(int)", 10, "shop…(int)");
	assert_name("operator+(int, int)", 8, "ope…int)");
}

static void assert_names(const char *const *names, size_t n, unsigned int columns, const char *const *expected)
{
	unsigned int longest;
	char **labels = kymo_labels_create(names, n, columns, true, &longest);

	assert_non_null(labels);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(labels[i], expected[i]);
	kymo_labels_destroy(labels, n);
}

static void names_are_never_cut_to_the_same(void **state)
{
	static const char *const names[] = {
		"libc:memcpy",
		"libother:memcpy",
		"app:handle_a_request_of_kind_first_in_the_queue",
		"app:handle_a_request_of_kind_third_in_the_queue",
		"app:handle_a_request_of_kind_first_in_the_queue%return",
		"libc:pthread_mutex_lock",
		"libc:pthread_mutex_trylock",
		"libc:memcpy",
	};
	/* Only what is between "kind_" and "_in" tells two of them apart, and no cut of twelve columns shows that. */
	static const char *const expected[] = {
		"libc:memcpy",
		"memcpy",
		"app:handle_a_request_of_kind_first_in_the_queue",
		"app:handle_a_request_of_kind_third_in_the_queue",
		"ha…ue%return",
		"pthre…x_lock",
		"pthre…rylock",
		"libc:memcpy",
	};

	assert_names(names, 8, 12, expected);
}

static void any_number_of_names_at_any_width_stay_apart(void **state)
{
	enum { N = 60 };
	char texts[N][80];
	const char *names[N];

	for (size_t i = 0; i < N; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s:%s_%zu_%s%s", i % 3 ? "libone" : "libanother",
			 i % 2 ? "request" : "réponse你", i / 12, i % 5 ? "handler" : "handled",
			 i % 4 ? "" : "%return");
		names[i] = texts[i];
	}
	for (unsigned int columns = 0; columns < 40; columns++) {
		unsigned int longest;
		char **labels = kymo_labels_create(names, N, columns, true, &longest);

		assert_non_null(labels);
		for (size_t i = 0; i < N; i++)
			for (size_t k = 0; k < i; k++)
				assert_int_equal(!strcmp(labels[i], labels[k]), !strcmp(names[i], names[k]));
		kymo_labels_destroy(labels, N);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_read_well),
		cmocka_unit_test(text_from_a_trace_is_harmless),
		cmocka_unit_test(columns_are_those_of_a_terminal),
		cmocka_unit_test(each_value_falls_in_the_bucket_that_names_it),
		cmocka_unit_test(buckets_lie_side_by_side),
		cmocka_unit_test(extremes_and_sums_have_a_sign),
		cmocka_unit_test(few_values_are_kept_and_many_are_not),
		cmocka_unit_test(more_of_those_with_names_are_kept),
		cmocka_unit_test(near_losses_become_one_span),
		cmocka_unit_test(names_of_places_keep_their_offsets_where_they_are_cut),
		cmocka_unit_test(names_are_never_cut_to_the_same),
		cmocka_unit_test(any_number_of_names_at_any_width_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
