/*
 * Markers, whose arguments can be strings and doubles: what the author of the target's code has written, and what
 * stands in its memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "outputs.h"
#include "report/locations.h"
#include "report/stats.h"
#include "report/text.h"

static void copies_of_a_marker_are_one_row_of_the_summary(void **state)
{
	static const char expected[] =
		".: python3 -c 'import json', pid 4242\n"
		"2023-11-14 22:13:20, 0.000004000 s: 5 events, 1.25M/s; 3 of 4 probes, 1 thread, 1 CPU\n"
		"activity  ▇                     ▇                     ▇                      ▇                     █\n"
		"\n"
		"PROBE         COUNT  RATE/S   SHARE                                THREADS        FIRST         LAST\n"
		"app:open          3    750k   60.0% █████████████████▍                   1  0.000000000  0.000004000\n"
		"app:open          1    250k   20.0% █████▊                               1  0.000002000  0.000002000\n"
		"app:open          1    250k   20.0% █████▊                               1  0.000003000  0.000003000\n"
		"1 probe was never hit\n"
		"\n"
		"THREAD        COUNT  RATE/S   SHARE                                      FIRST         LAST\n"
		"4242 python3      5   1.25M  100.0% █████████████████████████████  0.000000000  0.000004000\n"
		"\n"
		"app:open  server.c:120 serve+0x4 /bin/app+0x1234 and 1 more location: \"fd=%d path=%s ratio=%f "
		"why=%…\n"
		"  fd  3 … 4, mean 3.3                               ratio  -1e+300 … 0.25, mean -5e+299\n"
		"    3 2 ██████████████████████████████████████████    (nan, inf) 1 █████████████████████████████████\n"
		"    4 1 █████████████████████\n"
		"  flags  0x10 … 0xffffffff                          time between  1.0µs … 3.0µs, mean 2.0µs\n"
		"          0x10 1 █████████████████████████████████    [512ns, 1.0µs) 1 █████████████████████████████\n"
		"          0x11 1 █████████████████████████████████    [1.0µs, 2.0µs) 0\n"
		"    0xffffffff 1 █████████████████████████████████    [2.0µs, 4.1µs) 1 █████████████████████████████\n"
		"\n"
		"app:open  other.c:7 serve+0x4 /bin/app+0x3000: \"fd=%d\"\n"
		"  fd  always -1\n"
		"    -1 1 █████████████████████████████████████████████████████████\n"
		"\n"
		"app:open  server.c:120 serve+0x4 /lib/plugin.so+0x1234: \"fd=%d path=%s ratio=%f why=%s flags=%x\"\n"
		"  fd  always 5                                      ratio  always 0.1\n"
		"    5 1 ██████████████████████████████████████████\n"
		"  flags  always 0x0\n"
		"    0x0 1 ████████████████████████████████████████\n";
	struct scratch scratch;

	enter(&scratch);
	write_marked(scratch.fd);
	assert_report(&(struct kymo_report_options){ .unicode = true, .width = 100 }, expected);
	leave(&scratch);
}

static void strings_stand_in_quotes_with_c_escapes(void **state)
{
	static const char expected[] =
		"   0.000000000 [000]   4242 python3 app:open fd=3 path=\"/etc/passwd\" ratio=0.25 why=\"\" "
		"flags=0x10\n"
		"   0.000001000 [000]   4242 python3 app:open fd=4 path=\"\\x1b[31m\\xff\\\"\\\\\\n\" ratio=-1e+300 "
		"why=\"é\" flags=0xffffffff\n"
		"   0.000002000 [000]   4242 python3 app:open fd=-1\n"
		"   0.000003000 [000]   4242 python3 app:open fd=5 path=\"\" ratio=0.1 why=\"plain\" flags=0x0\n"
		"   0.000004000 [000]   4242 python3 app:open fd=3 path=\"/tmp\" ratio=nan why=\"\" flags=0x11\n";
	struct scratch scratch;

	enter(&scratch);
	write_marked(scratch.fd);
	assert_report(&(struct kymo_report_options){ .mode = KYMO_REPORT_EVENTS, .unicode = true }, expected);
	leave(&scratch);
}

static void what_is_no_character_is_escaped(void **state)
{
	static const struct {
		const char *text, *unicode, *ascii;
	} cases[] = {
		{ "", "\"\"", "\"\"" },
		{ "\a\b\t\n\v\f\r\"\\", "\"\\a\\b\\t\\n\\v\\f\\r\\\"\\\\\"", "\"\\a\\b\\t\\n\\v\\f\\r\\\"\\\\\"" },
		{ "\x1b]0;x\x7f", "\"\\x1b]0;x\\x7f\"", "\"\\x1b]0;x\\x7f\"" },
		{ "\xc3\xa9", "\"\xc3\xa9\"", "\"\\xc3\\xa9\"" },
		/* C1 control, right to left override, cut off. */
		{ "\xc2\x9b\xe2\x80\xae\xe2\x82", "\"\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x82\"",
		  "\"\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x82\"" },
	};

	for (size_t i = 0; i < 2 * kymo_countof(cases); i++) {
		kymo_cleanup_free char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		kymo_text_quote(out, cases[i / 2].text, i % 2);
		assert_int_equal(fclose(out), 0);
		assert_string_equal(text, i % 2 ? cases[i / 2].unicode : cases[i / 2].ascii);
	}
}

static void a_double_is_a_decimal_that_is_read_back_as_it(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ -0.0, "-0" },
		{ 0.25, "0.25" },
		{ 0.1, "0.1" },
		{ 3, "3" },
		{ -1e300, "-1e+300" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 5e-324, "4.94065645841247e-324" },
		{ __builtin_inf(), "inf" },
		{ -__builtin_inf(), "-inf" },
		{ __builtin_nan(""), "nan" },
		{ -__builtin_nan(""), "nan" },
	};
	char buffer[TEXT_NUMBER];

	for (size_t i = 0; i < kymo_countof(cases); i++)
		assert_string_equal(kymo_text_double(buffer, cases[i].value), cases[i].text);
}

static void what_is_no_number_does_not_spoil_the_others(void **state)
{
	static const double values[] = { 1.7e308, __builtin_nan(""), 1.7e308, -__builtin_inf(), -1, 1.7e308 };
	struct reals reals = { 0 };

	for (size_t i = 0; i < kymo_countof(values); i++)
		kymo_reals_add(&reals, values[i]);
	assert_int_equal(reals.count, 4);
	assert_int_equal(reals.n_others, 2);
	assert_true(reals.min == -1 && reals.max == 1.7e308);
	assert_true(kymo_reals_mean(&reals) > 1.27e308 && kymo_reals_mean(&reals) < 1.28e308);
}

static void json_has_a_probe_for_all_places_of_a_marker(void **state)
{
	static const char *const parts[] = {
		"{\"id\": 1, \"name\": \"app:open\", \"path\": \"/bin/app\", \"offset\": 4660, \"symbol\": "
		"\"serve+0x4\", "
		"\"build_id\": \"01fe\", \"kind\": \"marker\", \"source\": \"server.c:120\", "
		"\"format\": \"fd=%d path=%s ratio=%f why=%s flags=%x\", "
		"\"places\": [{\"id\": 1, \"offset\": 4660, \"symbol\": \"serve+0x4\", \"source\": \"server.c:120\", "
		"\"count\": 2}, "
		"{\"id\": 2, \"offset\": 8192, \"symbol\": \"serve+0x4\", \"source\": \"server.c:120\", \"count\": "
		"1}], "
		"\"count\": 3, \"threads\": 1, ",
		"{\"name\": \"path\", \"type\": \"string\", \"faults\": 0, \"count\": 3}, "
		"{\"name\": \"ratio\", \"type\": \"f64\", \"faults\": 0, \"count\": 3, \"not_finite\": 1, "
		"\"min\": -1e+300, \"max\": 0.25, \"mean\": -5e+299}, ",
		"{\"id\": 3, \"name\": \"app:open\", \"path\": \"/bin/app\"",
		"{\"id\": 4, \"name\": \"app:open\", \"path\": \"/lib/plugin.so\"",
		("\"format\": \"\", \"places\": [{\"id\": 5, \"offset\": 16384, \"symbol\": \"serve+0x4\", "
		 "\"source\": \"server.c:130\", \"count\": 0}], \"count\": 0, \"threads\": 0, \"more_threads\": false, "
		 "\"arguments\": []}]"),
	};
	struct kymo_report_options options = { .mode = KYMO_REPORT_JSON };
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	enter(&scratch);
	write_marked(scratch.fd);
	text = reported(&options);
	for (size_t i = 0; i < kymo_countof(parts); i++) {
		if (!strstr(text, parts[i]))
			print_message("not found: %s\nin: %s", parts[i], text);
		assert_non_null(strstr(text, parts[i]));
	}
	assert_null(strstr(text, "{\"id\": 2, \"name\""));
	leave(&scratch);
}

static void json_of_markers_is_json_whatever_their_format(void **state)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_JSON };
	struct kymo_ctf_trace trace = marked_trace();
	struct kymo_ctf_event event = trace.events[OPEN];
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	needs_command("python3");
	enter(&scratch);
	write_marked(scratch.fd);
	event.format = event.source = (char *)HOSTILE_TEXT;
	trace.events = &event;
	trace.n_events = 1;
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	text = reported(&options);
	assert_non_null(strstr(text, "\"format\": \"\\u001b[31m\\ufffd\\\"\\\\\\u000a\""));
	assert_is_json(text);
	leave(&scratch);
}

static void only_markers_of_one_file_and_with_the_same_fields_are_one_probe(void **state)
{
	struct kymo_ctf_trace trace = marked_trace();
	struct kymo_ctf_event events[6];
	struct location *locations;
	size_t n;

	for (size_t i = 0; i < kymo_countof(events); i++)
		events[i] = trace.events[OPEN];
	/* Functions of one name in two source files of a program are two. */
	events[1].kind = KYMO_CTF_PLACE;
	events[2].kind = KYMO_CTF_PLACE;
	events[3].build_id = NULL;
	events[5].source = (char *)"client.c:1";
	trace.events = events;
	trace.n_events = kymo_countof(events);
	locations = kymo_locations_create(&trace, &n);
	assert_non_null(locations);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < kymo_countof(events); i++)
		assert_int_equal(locations[i].first, i < 4 ? i : 0);
	assert_int_equal(locations[0].n, 3);
	assert_int_equal(locations[0].next, 4);
	assert_int_equal(locations[4].next, 5);
	assert_true(locations[5].next == NO_LOCATION && locations[1].next == NO_LOCATION);
	free(locations);
}

/* An entry waits for its return while the reader goes on far beyond what it has in memory. */
static void a_call_that_waits_keeps_its_strings(void **state)
{
	enum { OTHERS = 3500 };
	static struct kymo_ctf_field path[] = { { (char *)"path", KYMO_TYPE_STRING, NULL, 0, NULL, false } };
	struct kymo_report_options options = { .mode = KYMO_REPORT_GRAPH };
	struct kymo_ctf_trace trace = timeline_trace();
	kymo_cleanup_free char *text = NULL;
	struct kymo_ctf_stream *stream;
	static struct payload payload;
	struct scratch scratch;
	char long_text[250];

	enter(&scratch);
	memset(long_text, 'z', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	for (int i = 0; i < 3; i++) {
		struct kymo_ctf_event *event = &trace.events[(const int[]){ PARSE, PARSE_RETURN, LINE }[i]];

		event->fields = path;
		event->n_fields = 1;
		event->has_faults = false;
	}
	stream = begin_trace(scratch.fd, &trace, "s", 0);
	payload_add(&payload, &trace.events[PARSE], 1, 1, 0, (uint64_t[]){ text_value("the first") });
	for (uint64_t i = 0; i < OTHERS; i++)
		payload_add(&payload, &trace.events[LINE], 2, 2, 0, (uint64_t[]){ text_value(long_text) });
	payload_add(&payload, &trace.events[PARSE_RETURN], 3, 1, 0, (uint64_t[]){ text_value("the last") });
	flush_payload(stream, &payload, 1, 3, 0, 0);
	kymo_ctf_stream_destroy(stream);
	text = reported(&options);
	assert_non_null(strstr(text, "parse(path=\"the first\") = \"the last\"\n"));
	assert_non_null(strstr(text, "* app:parse+0x8 path=\"zzzz"));
	leave(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_of_a_marker_are_one_row_of_the_summary),
		cmocka_unit_test(strings_stand_in_quotes_with_c_escapes),
		cmocka_unit_test(what_is_no_character_is_escaped),
		cmocka_unit_test(a_double_is_a_decimal_that_is_read_back_as_it),
		cmocka_unit_test(what_is_no_number_does_not_spoil_the_others),
		cmocka_unit_test(json_has_a_probe_for_all_places_of_a_marker),
		cmocka_unit_test(json_of_markers_is_json_whatever_their_format),
		cmocka_unit_test(only_markers_of_one_file_and_with_the_same_fields_are_one_probe),
		cmocka_unit_test(a_call_that_waits_keeps_its_strings),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
