/* The user's words for aggregations in pieces, and what is said of bad ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggr/words.h"
#include "base/cleanup.h"

static void print(char *out, size_t size, struct kymo_aggr_piece piece)
{
	const size_t used = strlen(out);

	snprintf(out + used, size - used, "[%.*s]", piece.start ? (int)(piece.end - piece.start) : 0,
		 piece.start ? piece.start : "");
}

/* "[probe][value][key][key]", or the first line of the error. */
static const char *split(enum kymo_aggr_kind kind, const char *text)
{
	static char out[512];
	struct kymo_aggr_pieces pieces;
	struct kymo_error *error = kymo_aggr_split(kind, text, &pieces);

	*out = '\0';
	if (error) {
		snprintf(out, sizeof(out), "%.*s", (int)strcspn(error->message, "\n"), error->message);
		kymo_error_destroy(error);
		return out;
	}
	print(out, sizeof(out), pieces.probe);
	print(out, sizeof(out), pieces.value);
	for (size_t i = 0; i < pieces.n_keys; i++)
		print(out, sizeof(out), pieces.keys[i]);
	if (kind == KYMO_AGGR_LHIST)
		snprintf(out + strlen(out), sizeof(out) - strlen(out), " %lld %lld %lld", (long long)pieces.low,
			 (long long)pieces.high, (long long)pieces.step);
	return out;
}

static void test_pieces(void **state)
{
	assert_string_equal(split(KYMO_AGGR_COUNT, "libc:write by fd, comm"), "[libc:write][][fd][comm]");
	assert_string_equal(split(KYMO_AGGR_COUNT, "libc:write"), "[libc:write][]");
	assert_string_equal(split(KYMO_AGGR_COUNT, "libc:write by stack , comm"), "[libc:write][][stack][comm]");
	assert_string_equal(split(KYMO_AGGR_HIST, "duration by stack"), "[][duration][stack]");
	assert_string_equal(split(KYMO_AGGR_COUNT, "libc:write sample 1/100 by tid"),
			    "[libc:write sample 1/100][][tid]");
	assert_string_equal(split(KYMO_AGGR_SUM, "libc:write /arg0 > 2/ first 10 arg2 by tid"),
			    "[libc:write /arg0 > 2/ first 10][arg2][tid]");
	assert_string_equal(split(KYMO_AGGR_HIST, "m app:query__done duration by tid"),
			    "[m app:query__done][duration][tid]");
	assert_string_equal(split(KYMO_AGGR_UNTIL, "m query__done /duration > 2ms/"),
			    "[m query__done /duration > 2ms/][]");
	assert_string_equal(split(KYMO_AGGR_SUM, "m by tid"), "[][m][tid]");
	assert_string_equal(split(KYMO_AGGR_SUM, "m"), "[][m]");
	assert_string_equal(split(KYMO_AGGR_SUM, "m + 1"), "[][m + 1]");
	assert_string_equal(split(KYMO_AGGR_COUNT, "m by*"), "[m by*][]");
	assert_string_equal(split(KYMO_AGGR_SUM, "libc:write first by sample"), "[libc:write][first][sample]");
	assert_string_equal(split(KYMO_AGGR_SUM, "libc:write first + 10"), "[libc:write][first + 10]");
	assert_string_equal(split(KYMO_AGGR_SUM, "libc:write sample 50/s first"), "[libc:write sample 50/s][first]");
	assert_string_equal(split(KYMO_AGGR_COUNT, "  by tid "), "[][][tid]");
	assert_string_equal(split(KYMO_AGGR_COUNT, ""), "[][]");
	assert_string_equal(split(KYMO_AGGR_SUM, "libc:malloc /arg0 > 64K && arg1/ arg0 + 1 by (int)arg0 & 0xff , pid"),
			    "[libc:malloc /arg0 > 64K && arg1/][arg0 + 1][(int)arg0 & 0xff][pid]");
	assert_string_equal(split(KYMO_AGGR_SUM, "libc:malloc /arg0 / 2 > 8/ arg0 / 2"),
			    "[libc:malloc /arg0 / 2 > 8/][arg0 / 2]");
	assert_string_equal(split(KYMO_AGGR_HIST, "duration by arg0"), "[][duration][arg0]");
	assert_string_equal(split(KYMO_AGGR_HIST, "arg0?1:2"), "[][arg0?1:2]");
	assert_string_equal(split(KYMO_AGGR_HIST, "r:name libc:read retval"), "[r:name libc:read][retval]");
	assert_string_equal(split(KYMO_AGGR_HIST, "./app:shop::Cart::add(int, long) arg1 by arg0"),
			    "[./app:shop::Cart::add(int, long)][arg1][arg0]");
	assert_string_equal(split(KYMO_AGGR_TOP, "libc:malloc by tid"), "[libc:malloc][][tid]");
	assert_string_equal(split(KYMO_AGGR_LHIST, "libc:read duration, 0, 10ms, 1ms by tid"),
			    "[libc:read][duration][tid] 0 10000000 1000000");
	assert_string_equal(split(KYMO_AGGR_LHIST, "arg0, -0x40, 4K, 64"), "[][arg0] -64 4096 64");
	assert_string_equal(split(KYMO_AGGR_SUM, "arg0 == ',' by (arg0 ? 1 : 2)"), "[][arg0 == ','][(arg0 ? 1 : 2)]");
}

static void test_errors(void **state)
{
	assert_non_null(strstr(split(KYMO_AGGR_COUNT, "libc:write fd"), "column 12: count takes no value"));
	assert_non_null(strstr(split(KYMO_AGGR_SUM, "libc:write by fd"), "column 12: sum takes a value"));
	assert_non_null(strstr(split(KYMO_AGGR_COUNT, "by tid,,pid"), "column 8: expected a key"));
	assert_non_null(strstr(split(KYMO_AGGR_COUNT, "by a,b,c,d,e"), "column 12: an aggregation has at most 4 keys"));
	assert_non_null(strstr(split(KYMO_AGGR_MAX, "probe"), "column 1: 'probe' is text, and max takes a number"));
	assert_non_null(strstr(split(KYMO_AGGR_AVG, "pid"), "column 1: 'pid' is a key"));
	assert_non_null(strstr(split(KYMO_AGGR_UNTIL, "libc:read first 10"), "column 1: --until looks at each hit"));
	assert_non_null(strstr(split(KYMO_AGGR_AVG, "stack"), "column 1: 'stack' is a key"));
	assert_non_null(strstr(split(KYMO_AGGR_COUNT, "libc:read /arg0"), "column 11: expected '/'"));
	assert_non_null(strstr(split(KYMO_AGGR_LHIST, "arg0, 0, 9223372036854775807, 1"), "steps"));
	assert_non_null(strstr(split(KYMO_AGGR_LHIST, "arg0, 0, 10, 0"), "steps"));
	assert_non_null(strstr(split(KYMO_AGGR_LHIST, "arg0, 0, 10, 1, 2"), "expected 'by' or the end"));
	assert_non_null(strstr(split(KYMO_AGGR_LHIST, "arg0, 0, 99999999999G, 1"), "is no number"));
}

static void test_names(void **state)
{
	static const char text[] = "(int)retval + xretval";

	assert_true(kymo_aggr_has_name((struct kymo_aggr_piece){ text, text + strlen(text) }, "retval"));
	assert_false(kymo_aggr_has_name((struct kymo_aggr_piece){ text + 12, text + strlen(text) }, "retval"));
	assert_int_equal(kymo_aggr_what_of((struct kymo_aggr_piece){ text, text + 5 }), KYMO_AGGR_VALUE);
}

/* "[text of the probe] least greatest", or the first line of the error. */
static const char *limits(const char *text)
{
	static char out[512];
	struct kymo_aggr_pieces pieces;
	struct kymo_error *error = kymo_aggr_split(KYMO_AGGR_UNTIL, text, &pieces);
	kymo_cleanup_free char *probe = NULL;

	if (error) {
		const char *sentence = strchr(error->message, ':') + 2; /* after the column */

		snprintf(out, sizeof(out), "%.*s", (int)strcspn(sentence, "\n"), sentence);
		kymo_error_destroy(error);
		return out;
	}
	probe = kymo_aggr_probe_text(&pieces);
	assert_non_null(probe);
	snprintf(out, sizeof(out), "[%s] %llu %lld", probe, (unsigned long long)pieces.duration_min,
		 (long long)pieces.duration_max);
	return out;
}

static void test_limits_of_the_duration(void **state)
{
	assert_string_equal(limits("libc:read"), "[libc:read] 0 -1");
	assert_string_equal(limits("libc:read /arg0 > 3/"), "[libc:read /arg0 > 3/] 0 -1");
	assert_string_equal(limits("libc:read /duration > 5ms/"), "[libc:read ] 5000001 -1");
	assert_string_equal(limits("libc:read /duration>=5us && duration < 1s/"), "[libc:read ] 5000 999999999");
	assert_string_equal(limits("libc:read /duration <= 0/"), "[libc:read ] 0 0");
	assert_string_equal(limits("libc:read /arg0 == '&' && duration > 1K && (arg1 && arg2)/"),
			    "[libc:read /arg0 == '&' && 1             && (arg1 && arg2)/] 1025 -1");
	assert_string_equal(limits("libc:read /durations > 5/"), "[libc:read /durations > 5/] 0 -1");
}

static void test_bad_limits(void **state)
{
	static const char joined[] =
		"the duration of a call is compared with a number, and that is joined to the rest by "
		"'&&': /arg0 > 4K && duration > 5ms/";

	assert_string_equal(limits("libc:read /duration/"), joined);
	assert_string_equal(limits("libc:read /duration == 5/"), joined);
	assert_string_equal(limits("libc:read /5ms < duration/"), joined);
	assert_string_equal(limits("libc:read /(duration > 5ms)/"), joined);
	assert_string_equal(limits("libc:read /duration > /"), "expected a number, such as 4096, 4K or 10ms");
	assert_string_equal(limits("libc:read /duration > 5ms || arg0/"), joined);
	assert_string_equal(limits("libc:read /duration < 0/"), "no call has such a duration");
	assert_string_equal(limits("libc:read /duration > -1/"), "no call has such a duration");
	assert_string_equal(
		limits("libc:read /duration > 1 && duration > 2 && duration > 3 && duration > 4 && duration > 5/"),
		"a filter compares the duration 4 times at most");
	assert_string_equal(limits("duration > 5"),
			    "--until takes a probe and a filter alone: 'libc:read /duration > 5ms/'");
	assert_string_equal(limits(""), "until what? Begin with FILE:FUNCTION, as in 'libc:malloc /arg0 > 1M/'");
	assert_string_equal(limits("libc:read by tid"), "--until has no keys: the first hit decides");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),     cmocka_unit_test(test_errors),
		cmocka_unit_test(test_names),      cmocka_unit_test(test_limits_of_the_duration),
		cmocka_unit_test(test_bad_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
