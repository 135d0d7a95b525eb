#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "outputs.h"

static void a_summary_looks_so(void **state)
{
	static const char expected[] =
		".: python3 -c 'import json', pid 4242\n"
		"2023-11-14 22:13:20, 1.000 s: 12 events, 12/s; 3 probes, 3 threads, 2 CPUs\n"
		"activity  █                                                                    ▁\n"
		"\n"
		"PROBE                    COUNT  RATE/S   SHARE             THREADS  FIRST   LAST\n"
		"libc:malloc                  8     8.0   66.7% ██████▋           1  0.000  0.000\n"
		"libc:read                    3     3.0   25.0% ██▌               1  0.000  1.000\n"
		"a \"quoted\"\\x0a\\name\\x1b      1     1.0    8.3% ▉                 1  0.000  0.000\n"
		"\n"
		"THREAD                   COUNT  RATE/S   SHARE             FIRST   LAST\n"
		"4242 python3                 8     8.0   66.7% ██████▋     0.000  0.000\n"
		"4243 evil\\x1b[31m\\x0a\"\\      3     3.0   25.0% ██▌         0.000  1.000\n"
		"9                            1     1.0    8.3% ▉           0.000  0.000\n"
		"\n"
		"libc:malloc  malloc /usr/lib/libc.so.6+0x9a0e0\n"
		"  size  1 … 128, mean 31.9                time between  always 1.0µs\n"
		"      1 1 ██████████████████████████████    [512ns, 1.0µs) 7 ███████████████████\n"
		"      2 1 ██████████████████████████████\n"
		"      4 1 ██████████████████████████████\n"
		"      8 1 ██████████████████████████████\n"
		"     16 1 ██████████████████████████████\n"
		"     32 1 ██████████████████████████████\n"
		"     64 1 ██████████████████████████████\n"
		"    128 1 ██████████████████████████████\n"
		"\n"
		"libc:read  f<a, b>+0x12 /tmp/a b?&\"%é+0x0\n"
		"  fd  -1 … 3, mean 1.7                    buf  0x7fff0000 … 0x7fff0010\n"
		"     3 2 ███████████████████████████████    0x7fff0000 1 ███████████████████████\n"
		"    -1 1 ███████████████▌                   0x7fff0010 1 ███████████████████████\n"
		"                                               (fault) 1 ███████████████████████\n"
		"  int  200 … 202, mean 201.0              time between  1.0µs … 1.0s, mean 500ms\n"
		"    200 1 ██████████████████████████████    [512ns, 1.0µs) 1 ███████████████████\n"
		"    201 1 ██████████████████████████████                 …\n"
		"    202 1 ██████████████████████████████     [537ms, 1.1s) 1 ███████████████████\n";
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 0);
	assert_report(&(struct kymo_report_options){ .unicode = true }, expected);
	leave(&scratch);
}

static void a_narrow_ascii_summary_with_losses_looks_so(void **state)
{
	static const char expected[] = ".: python3 -c 'import json', pid 4242\n"
				       "2023-11-14 22:13:20, 1.000 s: 12 events, 12/s; 3 probes, 3 threads, 2 CPUs\n"
				       "activity  #                                      .\n"
				       "lost      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
				       "lost 5 events (29 % of all): 0.000 to 1.000 s\n"
				       "\n"
				       "PROBE                 COUNT  RATE/S   SHARE\n"
				       "libc:malloc               8     8.0   66.7% ####\n"
				       "libc:read                 3     3.0   25.0% ##\n"
				       "a \"quoted~a\\name\\x1b      1     1.0    8.3% #\n"
				       "\n"
				       "THREAD                COUNT  RATE/S   SHARE\n"
				       "4242 python3              8     8.0   66.7% ####\n"
				       "4243 evil~[31m\\x0a\"\\      3     3.0   25.0% ##\n"
				       "9                         1     1.0    8.3% #\n"
				       "\n"
				       "libc:malloc  malloc /usr/lib/libc.so.6+0x9a0e0\n"
				       "  size  1 .. 128, mean 31.9\n"
				       "      1 1 ########################################\n"
				       "      2 1 ########################################\n"
				       "      4 1 ########################################\n"
				       "      8 1 ########################################\n"
				       "     16 1 ########################################\n"
				       "     32 1 ########################################\n"
				       "     64 1 ########################################\n"
				       "    128 1 ########################################\n"
				       "  time between  always 1.0us\n"
				       "    [512ns, 1.0us) 7 #############################\n"
				       "\n"
				       "libc:read  f<a, b>+0x12 /tmp/a b?&\"%\\xc3\\xa9+0x0\n"
				       "  fd  -1 .. 3, mean 1.7\n"
				       "     3 2 #########################################\n"
				       "    -1 1 #####################\n"
				       "  buf  0x7fff0000 .. 0x7fff0010\n"
				       "    0x7fff0000 1 #################################\n"
				       "    0x7fff0010 1 #################################\n"
				       "       (fault) 1 #################################\n"
				       "  int  200 .. 202, mean 201.0\n"
				       "    200 1 ########################################\n"
				       "    201 1 ########################################\n"
				       "    202 1 ########################################\n"
				       "  time between  1.0us .. 1.0s, mean 500ms\n"
				       "    [512ns, 1.0us) 1 #############################\n"
				       "               ...\n"
				       "     [537ms, 1.1s) 1 #############################\n";
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	assert_report(&(struct kymo_report_options){ .width = 50 }, expected);
	leave(&scratch);
}

static void losses_are_those_of_the_whole_recording_where_a_part_is_shown(void **state)
{
	static const char expected[] = ".: python3 -c 'import json', pid 4242\n"
				       "2023-11-14 22:13:20, 1.000 s: 1 event, 1.0/s; 1 probe, 1 thread, 1 CPU\n"
				       "lost 5 events (in the whole recording): 0.000 to 1.000 s\n";
	const char *const probes[] = { "a *" };
	const struct kymo_report_options options = { .width = 50, .filter = { .probes = probes, .n_probes = 1 } };
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	assert_null(kymo_report(".", &options, out));
	fclose(out);
	text[sizeof(expected) - 1 < size ? sizeof(expected) - 1 : size] = '\0';
	assert_string_equal(text, expected);
	leave(&scratch);
}

static void events_look_so(void **state)
{
	static const char expected[] =
		"   0.000000000 [000]   4242 python3 libc:malloc size=1\n"
		"   0.000000500 [001]   4243 evil\\x1b[31m\\x0a\"\\ libc:read fd=-1 buf=0x7fff0000 int=200\n"
		"   0.000001000 [000]   4242 python3 libc:malloc size=2\n"
		"   0.000001500 [001]   4243 evil\\x1b[31m\\x0a\"\\ libc:read fd=3 buf=0x7fff0010 int=201\n"
		"   0.000001600 [001] --- lost 5 events within 1.0s ---\n"
		"   0.000002000 [000]   4242 python3 libc:malloc size=4\n"
		"   0.000003000 [000]   4242 python3 libc:malloc size=8\n"
		"   0.000004000 [000]   4242 python3 libc:malloc size=16\n"
		"   0.000005000 [000]   4242 python3 libc:malloc size=32\n"
		"   0.000006000 [000]   4242 python3 libc:malloc size=64\n"
		"   0.000007000 [000]   4242 python3 libc:malloc size=128\n"
		"   0.000007500 [000]      9 a \"quoted\"\\x0a\\name\\x1b\n"
		"   1.000001500 [001]   4243 evil\\x1b[31m\\x0a\"\\ libc:read fd=3 buf=(fault) int=202\n";
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	assert_report(&(struct kymo_report_options){ .mode = KYMO_REPORT_EVENTS, .unicode = true }, expected);
	leave(&scratch);
}

static void events_show_the_time_of_day_if_asked(void **state)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_EVENTS, .wall = true };
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 0);
	text = reported(&options);
	assert_non_null(strstr(text, "2023-11-14 22:13:20.000001000 [000]   4242 python3 libc:malloc size=1\n"));
	assert_non_null(strstr(text, "2023-11-14 22:13:21.000002500 [001]   4243 evil"));
	leave(&scratch);
}

static void json_looks_so(void **state)
{
	static const char expected[] =
		"{\"format\": 1,\n"
		"\"directory\": \".\",\n"
		"\"clock_frequency\": 1000000000,\n"
		"\"clock_invariant\": true,\n"
		"\"monotonic_offset_ns\": -1699999000000000000,\n"
		"\"environment\": {\n"
		"  \"command\": \"python3 -c 'import json'\",\n"
		"  \"pid\": \"4242\"},\n"
		"\"events\": 12,\n"
		"\"duration_ns\": 1000001500,\n"
		"\"cpus\": 2, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000001000002500,\n"
		"\"probes\": [\n"
		"  {\"id\": 0, \"name\": \"libc:malloc\", \"path\": \"/usr/lib/libc.so.6\", \"offset\": 631008, "
		"\"symbol\": \"malloc\", \"build_id\": \"93ac01\", \"kind\": \"place\", \"count\": 8, \"threads\": 1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000008000, "
		"\"arguments\": [{\"name\": \"size\", \"type\": \"u64\", \"faults\": 0, \"count\": 8, "
		"\"min\": 1, \"max\": 128, \"sum\": 255, \"histogram\": [{\"low\": 1, \"high\": 1, "
		"\"count\": 1}, {\"low\": 2, \"high\": 3, \"count\": 1}, {\"low\": 4, \"high\": 7, "
		"\"count\": 1}, {\"low\": 8, \"high\": 15, \"count\": 1}, {\"low\": 16, \"high\": 31, "
		"\"count\": 1}, {\"low\": 32, \"high\": 63, \"count\": 1}, {\"low\": 64, \"high\": 127, "
		"\"count\": 1}, {\"low\": 128, \"high\": 255, \"count\": 1}], \"values\": [{\"value\": 1, "
		"\"count\": 1}, {\"value\": 2, \"count\": 1}, {\"value\": 4, \"count\": 1}, {\"value\": 8, "
		"\"count\": 1}, {\"value\": 16, \"count\": 1}, {\"value\": 32, \"count\": 1}, {\"value\": 64, "
		"\"count\": 1}, {\"value\": 128, \"count\": 1}]}], \"between_ns\": {\"count\": 7, \"min\": 1000, "
		"\"max\": 1000, \"sum\": 7000, \"histogram\": [{\"low\": 512, \"high\": 1023, \"count\": 7}]}},\n"
		"  {\"id\": 7, \"name\": \"libc:read\", \"path\": \"/tmp/a b?&\\\"%é\", \"offset\": 0, "
		"\"symbol\": \"f<a, b>+0x12\", \"build_id\": null, \"kind\": \"place\", \"count\": 3, \"threads\": 1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000001500, \"last_ns\": 1700000001000002500, "
		"\"arguments\": [{\"name\": \"fd\", \"type\": \"s32\", \"faults\": 0, \"count\": 3, \"min\": -1, "
		"\"max\": 3, \"sum\": 5, \"histogram\": [{\"low\": -1, \"high\": -1, \"count\": 1}, {\"low\": 2, "
		"\"high\": 3, \"count\": 2}], \"values\": [{\"value\": -1, \"count\": 1}, {\"value\": 3, "
		"\"count\": 2}]}, {\"name\": \"buf\", \"type\": \"x64\", \"faults\": 1, \"count\": 2, "
		"\"min\": 2147418112, \"max\": 2147418128, \"sum\": 4294836240, "
		"\"histogram\": [{\"low\": 1073741824, \"high\": 2147483647, \"count\": 2}], "
		"\"values\": [{\"value\": 2147418112, \"count\": 1}, {\"value\": 2147418128, \"count\": 1}]}, "
		"{\"name\": \"int\", \"type\": \"u8\", \"faults\": 0, \"count\": 3, \"min\": 200, \"max\": 202, "
		"\"sum\": 603, \"histogram\": [{\"low\": 128, \"high\": 255, \"count\": 3}], "
		"\"values\": [{\"value\": 200, \"count\": 1}, {\"value\": 201, \"count\": 1}, {\"value\": 202, "
		"\"count\": 1}]}], \"between_ns\": {\"count\": 2, \"min\": 1000, \"max\": 1000000000, "
		"\"sum\": 1000001000, \"histogram\": [{\"low\": 512, \"high\": 1023, \"count\": 1}, "
		"{\"low\": 536870912, \"high\": 1073741823, \"count\": 1}]}},\n"
		"  {\"id\": 1048575, \"name\": \"a \\\"quoted\\\"\\u000a\\\\name\\u001b\", \"path\": null, "
		"\"offset\": 0, \"symbol\": null, \"build_id\": null, \"kind\": \"place\", \"count\": 1, \"threads\": "
		"1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000008500, \"last_ns\": 1700000000000008500, "
		"\"arguments\": [], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}}],\n"
		"\"aggregations\": [],\n"
		"\"calls\": [],\n"
		"\"calls_of_other_threads\": 0,\n"
		"\"processes\": [],\n"
		"\"threads\": [\n"
		"  {\"tid\": 4242, \"pid\": null, \"name\": \"python3\", \"count\": 8, \"first_ns\": "
		"1700000000000001000, "
		"\"last_ns\": 1700000000000008000},\n"
		"  {\"tid\": 4243, \"pid\": null, \"name\": \"evil\\u001b[31m\\u000a\\\"\\\\\", \"count\": 3, "
		"\"first_ns\": 1700000000000001500, \"last_ns\": 1700000001000002500},\n"
		"  {\"tid\": 9, \"pid\": null, \"name\": null, \"count\": 1, \"first_ns\": 1700000000000008500, "
		"\"last_ns\": 1700000000000008500}],\n"
		"\"events_of_other_threads\": 0,\n"
		"\"lost_events\": 5,\n"
		"\"lost_in_vforks\": 0,\n"
		"\"overwritten_packets\": 0,\n"
		"\"losses\": [\n"
		"  {\"cpu\": 1, \"events\": 5, \"packets\": 0, \"begin_ns\": 1700000000000002600, "
		"\"end_ns\": 1700000001000002500}],\n"
		"\"gaps\": [],\n"
		"\"warnings\": []\n"
		"}\n";
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	assert_report(&(struct kymo_report_options){ .mode = KYMO_REPORT_JSON }, expected);
	leave(&scratch);
}

static void json_is_json(void **state)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_JSON };
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	needs_command("python3");
	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	text = reported(&options);
	assert_is_json(text);
	leave(&scratch);
}

static void colors_come_only_when_asked_for(void **state)
{
	struct kymo_report_options options = { .unicode = true };
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	for (int mode = KYMO_REPORT_SUMMARY; mode <= KYMO_REPORT_EVENTS; mode++) {
		kymo_cleanup_free char *plain = NULL;
		kymo_cleanup_free char *colored = NULL;

		options.mode = (enum kymo_report_mode)mode;
		options.color = false;
		plain = reported(&options);
		assert_null(strchr(plain, '\x1b'));
		options.color = true;
		colored = reported(&options);
		assert_non_null(strstr(colored, "\x1b[1;31m"));
	}
	leave(&scratch);
}

/* A trace of 40 probes; probe i is hit i times, each time by a thread of its own. */
static void write_many(int dirfd)
{
	enum { N = 40 };
	static struct payload payload;
	struct kymo_ctf_trace trace = synthetic_trace();
	struct kymo_ctf_event events[N] = { 0 };
	char names[N][32];
	struct kymo_ctf_stream *stream;

	trace.events = events;
	trace.n_events = N;
	must(kymo_ctf_stream_create(dirfd, "s", trace.uuid, 0, &stream));
	for (uint32_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "app:f%u", i);
		events[i].id = i;
		events[i].name = names[i];
		for (uint32_t j = 0; j < i; j++)
			payload_add(&payload, &events[i], 1000 * i + j, (int32_t)(10 + j), 0, NULL);
	}
	flush_payload(stream, &payload, 0, 40000, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_write_metadata(dirfd, &trace));
}

static size_t count_text(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		text++;
		n++;
	}
	return n;
}

static void of_many_probes_the_first_are_shown_or_all(void **state)
{
	struct kymo_report_options options = { .width = 100 };
	kymo_cleanup_free char *some = NULL;
	kymo_cleanup_free char *all = NULL;
	struct scratch scratch;

	enter(&scratch);
	write_many(scratch.fd);
	some = reported(&options);
	assert_non_null(strstr(some, "780 events"));
	assert_non_null(strstr(some, "; 39 of 40 probes, 39 threads, 1 CPU\n"));
	/* 20 rows of the table and 5 distributions. */
	assert_int_equal(count_text(some, "\napp:f"), 25);
	assert_non_null(strstr(some, "19 more probes, 190 events (--all shows them)\n1 probe was never hit\n"));
	assert_non_null(strstr(some, "29 more threads, 435 events (--all shows them)\n"));
	assert_non_null(strstr(some, "distributions of 34 more probes (--all shows them)\n"));
	options.all = true;
	all = reported(&options);
	/* The probe that was hit once has no time between two records. */
	assert_int_equal(count_text(all, "\napp:f"), 39 + 38);
	assert_non_null(strstr(all, "1 probe was never hit:\n  app:f0\n"));
	assert_null(strstr(all, "--all"));
	leave(&scratch);
}

static void a_trace_without_records_has_a_report(void **state)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_EVENTS };
	struct kymo_ctf_trace trace = synthetic_trace();
	kymo_cleanup_free char *json = NULL;
	struct scratch scratch;

	enter(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	assert_report(&options, "");
	options.mode = KYMO_REPORT_SUMMARY;
	assert_report(&options, ".: python3 -c 'import json', pid 4242\nno events; 3 probes\n");
	options.mode = KYMO_REPORT_JSON;
	json = reported(&options);
	assert_non_null(strstr(json, "\"events\": 0,\n\"duration_ns\": 0,\n\"cpus\": 0,\n"));
	leave(&scratch);
}

static void damage_is_told_and_the_rest_reported(void **state)
{
	struct kymo_report_options options = { 0 };
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 0);
	assert_int_equal(truncate("stream_1", sizeof(struct kymo_ctf_packet) + 30), 0);
	for (int mode = KYMO_REPORT_SUMMARY; mode <= KYMO_REPORT_GRAPH; mode++) {
		kymo_cleanup_free char *text = NULL;

		options.mode = (enum kymo_report_mode)mode;
		text = reported(&options);
		assert_non_null(strstr(text, "stream_1: the last packet is cut off; 4 bytes were left out"));
		assert_non_null(strstr(text, "libc:malloc"));
	}
	leave(&scratch);
}

static void an_output_that_takes_no_more_is_an_error(void **state)
{
	struct kymo_report_options options = { 0 };
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 0);
	for (int mode = KYMO_REPORT_SUMMARY; mode <= KYMO_REPORT_TREE; mode++) {
		kymo_cleanup_fclose FILE *out = fopen("/dev/full", "w");
		struct kymo_error *error;

		assert_non_null(out);
		options.mode = (enum kymo_report_mode)mode;
		error = kymo_report(".", &options, out);
		assert_non_null(error);
		assert_string_equal(error->message, "cannot write the report: No space left on device");
		kymo_error_destroy(error);
	}
	leave(&scratch);
}

static void no_width_breaks_the_summary(void **state)
{
	struct kymo_report_options options = { .unicode = true, .all = true };
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	for (options.width = 0; options.width < 300; options.width++) {
		kymo_cleanup_free char *text = reported(&options);

		assert_non_null(strstr(text, "libc:malloc"));
		for (const char *line = text; *line; line = strchr(line, '\n') + 1)
			assert_true(*line == '\n' || strchr(line, '\n')[-1] != ' ' || !strncmp(line, "activity", 8));
	}
	leave(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_summary_looks_so),
		cmocka_unit_test(a_narrow_ascii_summary_with_losses_looks_so),
		cmocka_unit_test(losses_are_those_of_the_whole_recording_where_a_part_is_shown),
		cmocka_unit_test(events_look_so),
		cmocka_unit_test(events_show_the_time_of_day_if_asked),
		cmocka_unit_test(json_looks_so),
		cmocka_unit_test(json_is_json),
		cmocka_unit_test(colors_come_only_when_asked_for),
		cmocka_unit_test(of_many_probes_the_first_are_shown_or_all),
		cmocka_unit_test(a_trace_without_records_has_a_report),
		cmocka_unit_test(damage_is_told_and_the_rest_reported),
		cmocka_unit_test(an_output_that_takes_no_more_is_an_error),
		cmocka_unit_test(no_width_breaks_the_summary),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
