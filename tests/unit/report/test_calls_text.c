/* What the report says of calls, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "outputs.h"

/* Two processes, nested calls, one that a loss cuts, one that is left. */
static const struct moment two_processes[] = {
	{ 1000, 10, PARSE },
	{ 1100, 10, MALLOC, 24 },
	{ 1120, 10, MALLOC_RETURN, 0x55 },
	{ 1150, 20, MALLOC, 8 },
	{ 1200, 10, EVAL, 1 },
	{ 1250, 20, MALLOC_RETURN, 0, 0, 1 },
	{ 2000, 10, PARSE_RETURN, 0, 1 },
	{ 3000, 20, MALLOC, 16 },
	{ 3010, 0, LOSS, 2 },
	{ 3020, 20, MALLOC_RETURN, 0x66 },
	{ 3030, 0, LOSS, 0 },
	{ 4000, 21, MALLOC, 16 },
	{ 4040, 21, MALLOC_RETURN, 0x77 },
	{ 4050, 21, EVAL_RETURN },
	{ 5000, 30, LINE, 9 },
};

static void write_two_processes(int dirfd)
{
	static struct kymo_ctf_process processes[] = {
		{ .pid = 10, .parent = 1, .command = (char *)"make -j2" },
		{ .pid = 20, .parent = 10, .begin = 1050, .end = 4800, .command = (char *)"cc -o \x1b a.c" },
		{ .pid = 25, .parent = 10, .begin = 4900, .command = (char *)"true" },
	};
	static struct kymo_ctf_thread threads[] = {
		{ .tid = 10, .pid = 10, .comm = (char *)"make" },
		{ .tid = 20, .pid = 20, .comm = (char *)"cc" },
		{ .tid = 21, .pid = 20, .begin = 3500, .comm = (char *)"cc:worker" },
	};
	struct kymo_ctf_trace trace = timeline_trace();

	trace.processes = processes;
	trace.n_processes = kymo_countof(processes);
	trace.threads = threads;
	trace.n_threads = kymo_countof(threads);
	write_timeline(dirfd, &trace, two_processes, kymo_countof(two_processes));
}

static void a_summary_of_calls_looks_so(void **state)
{
	static const char expected[] =
		".: python3 -c 'import json', pid 4242\n"
		"2023-11-14 22:13:20, 0.000004000 s: 13 events, 3.25M/s; 7 of 9 probes, 3 processes, 4 threads, 1 CPU\n"
		"activity  = #===                =                     ==                     =%                    =\n"
		"lost                                                   x\n"
		"lost 2 events (13 % of all): 0.000002 to 0.000002 s\n"
		"\n"
		"PROCESS            COUNT  RATE/S   SHARE                                 FIRST         LAST\n"
		"20 cc -o \\x1b a.c      7   1.75M   53.8% #############             0.000000150  0.000003050\n"
		"10 make -j2            5   1.25M   38.5% #########                 0.000000000  0.000001000\n"
		"1 event of threads whose process is not known\n"
		"1 process without an event\n"
		"\n"
		"PROBE               COUNT  RATE/S   SHARE                          THREADS        FIRST         LAST\n"
		"libc:malloc             4   1.00M   30.8% #######                        3  0.000000100  0.000003000\n"
		"libc:malloc%return      4   1.00M   30.8% #######                        3  0.000000120  0.000003040\n"
		"app:parse               1    250k    7.7% ##                             1  0.000000000  0.000000000\n"
		"app:parse%return        1    250k    7.7% ##                             1  0.000001000  0.000001000\n"
		"app:eval                1    250k    7.7% ##                             1  0.000000200  0.000000200\n"
		"app:eval%return         1    250k    7.7% ##                             1  0.000003050  0.000003050\n"
		"app:parse+0x8           1    250k    7.7% ##                             1  0.000004000  0.000004000\n"
		"2 probes were never hit\n"
		"\n"
		"CALLS         COUNT    MIN    P50    P90    P99    MAX   MEAN  TOTAL   SELF\n"
		"app:parse         1  1.0us  1.0us  1.0us  1.0us  1.0us  1.0us  1.0us  980ns\n"
		"libc:malloc       3   20ns   40ns  100ns  100ns  100ns   53ns  160ns  160ns\n"
		"app:eval          0      -      -      -      -      -      -      -      -\n"
		"1 call spans a loss and is left out\n"
		"1 call was left without a return\n"
		"1 return has no entry: the call began before the recording, or its entry was lost\n"
		"\n"
		"THREAD           COUNT  RATE/S   SHARE                                   FIRST         LAST\n"
		"10/10 make           5   1.25M   38.5% ##########                  0.000000000  0.000001000\n"
		"20/20 cc             4   1.00M   30.8% ########                    0.000000150  0.000002020\n"
		"20/21 cc:worker      3    750k   23.1% ######                      0.000003000  0.000003050\n"
		"30                   1    250k    7.7% ##                          0.000004000  0.000004000\n"
		"\n"
		"libc:malloc  malloc /lib/libc.so.6+0x1000\n"
		"  size  8 .. 24, mean 16.0                          duration  20ns .. 100ns, mean 53ns\n"
		"    16 2 #########################################     [16ns, 32ns) 1 ##############################\n"
		"     8 1 #####################                         [32ns, 64ns) 1 ##############################\n"
		"    24 1 #####################                        [64ns, 128ns) 1 ##############################\n"
		"  time between  50ns .. 1.9us, mean 966ns\n"
		"      [32ns, 64ns) 1 #############################\n"
		"               ...\n"
		"    [512ns, 1.0us) 1 #############################\n"
		"    [1.0us, 2.0us) 1 #############################\n"
		"\n"
		"libc:malloc%return  malloc /lib/libc.so.6+0x1044\n"
		"  ptr  0x55 .. 0x77                                 time between  130ns .. 1.8us, mean 973ns\n"
		"         0x55 1 ##################################    [128ns, 256ns) 1 #############################\n"
		"         0x66 1 ##################################    [256ns, 512ns) 0\n"
		"         0x77 1 ##################################    [512ns, 1.0us) 1 #############################\n"
		"    (unknown) 1 ##################################    [1.0us, 2.0us) 1 #############################\n"
		"\n"
		"app:parse  parse /bin/app+0x1000\n"
		"  duration  always 1.0us\n"
		"    [512ns, 1.0us) 1 #############################################\n"
		"\n"
		"app:parse%return  parse /bin/app+0x1010\n"
		"  ret  always 0                                     n  always 1\n"
		"    0 1 ##########################################    1 1 ##########################################\n"
		"\n"
		"app:eval  eval /bin/app+0x2000\n"
		"  depth  always 1\n"
		"    1 1 ##########################################################\n"
		"\n"
		"distributions of 2 more probes (--all shows them)\n";
	struct scratch scratch;

	enter(&scratch);
	write_two_processes(scratch.fd);
	assert_report(&(struct kymo_report_options){ .width = 100 }, expected);
	leave(&scratch);
}

static void json_of_calls_looks_so(void **state)
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
		"\"events\": 13,\n"
		"\"duration_ns\": 4000,\n"
		"\"cpus\": 1, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000005000,\n"
		"\"probes\": [\n"
		"  {\"id\": 1, \"name\": \"libc:malloc\", \"path\": \"/lib/libc.so.6\", \"offset\": 4096, \"symbol\": "
		"\"malloc\", \"build_id\": null, \"kind\": \"entry\", \"function_offset\": 4096, \"count\": 4, "
		"\"threads\": "
		"3, \"more_threads\": false, \"first_ns\": 1700000000000001100, \"last_ns\": 1700000000000004000, "
		"\"arguments\": [{\"name\": \"size\", \"type\": \"u64\", \"faults\": 0, \"count\": 4, \"min\": 8, "
		"\"max\": "
		"24, \"sum\": 64, \"histogram\": [{\"low\": 8, \"high\": 15, \"count\": 1}, {\"low\": 16, \"high\": "
		"31, "
		"\"count\": 3}], \"values\": [{\"value\": 24, \"count\": 1}, {\"value\": 8, \"count\": 1}, {\"value\": "
		"16, "
		"\"count\": 2}]}], \"between_ns\": {\"count\": 3, \"min\": 50, \"max\": 1850, \"sum\": 2900, "
		"\"histogram\": "
		"[{\"low\": 32, \"high\": 63, \"count\": 1}, {\"low\": 512, \"high\": 1023, \"count\": 1}, {\"low\": "
		"1024, "
		"\"high\": 2047, \"count\": 1}]}},\n"
		"  {\"id\": 2, \"name\": \"libc:malloc%return\", \"path\": \"/lib/libc.so.6\", \"offset\": 4164, "
		"\"symbol\": "
		"\"malloc\", \"build_id\": null, \"kind\": \"return\", \"function_offset\": 4096, \"count\": 4, "
		"\"threads\": "
		"3, \"more_threads\": false, \"first_ns\": 1700000000000001120, \"last_ns\": 1700000000000004040, "
		"\"arguments\": [{\"name\": \"ptr\", \"type\": \"x64\", \"faults\": 1, \"count\": 3, \"min\": 85, "
		"\"max\": "
		"119, \"sum\": 306, \"histogram\": [{\"low\": 64, \"high\": 127, \"count\": 3}], \"values\": "
		"[{\"value\": "
		"85, \"count\": 1}, {\"value\": 102, \"count\": 1}, {\"value\": 119, \"count\": 1}]}], \"between_ns\": "
		"{\"count\": 3, \"min\": 130, \"max\": 1770, \"sum\": 2920, \"histogram\": [{\"low\": 128, \"high\": "
		"255, "
		"\"count\": 1}, {\"low\": 512, \"high\": 1023, \"count\": 1}, {\"low\": 1024, \"high\": 2047, "
		"\"count\": "
		"1}]}},\n"
		"  {\"id\": 3, \"name\": \"app:parse\", \"path\": \"/bin/app\", \"offset\": 4096, \"symbol\": "
		"\"parse\", "
		"\"build_id\": null, \"kind\": \"entry\", \"function_offset\": 4096, \"count\": 1, \"threads\": 1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000001000, "
		"\"arguments\": [], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 4, \"name\": \"app:parse%return\", \"path\": \"/bin/app\", \"offset\": 4112, \"symbol\": "
		"\"parse\", \"build_id\": null, \"kind\": \"return\", \"function_offset\": 4096, \"count\": 1, "
		"\"threads\": "
		"1, \"more_threads\": false, \"first_ns\": 1700000000000002000, \"last_ns\": 1700000000000002000, "
		"\"arguments\": [{\"name\": \"ret\", \"type\": \"s32\", \"faults\": 0, \"count\": 1, \"min\": 0, "
		"\"max\": 0, "
		"\"sum\": 0, \"histogram\": [{\"low\": 0, \"high\": 0, \"count\": 1}], \"values\": [{\"value\": 0, "
		"\"count\": 1}]}, {\"name\": \"n\", \"type\": \"u8\", \"faults\": 0, \"count\": 1, \"min\": 1, "
		"\"max\": 1, "
		"\"sum\": 1, \"histogram\": [{\"low\": 1, \"high\": 1, \"count\": 1}], \"values\": [{\"value\": 1, "
		"\"count\": 1}]}], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 5, \"name\": \"app:eval\", \"path\": \"/bin/app\", \"offset\": 8192, \"symbol\": \"eval\", "
		"\"build_id\": null, \"kind\": \"entry\", \"function_offset\": 8192, \"count\": 1, \"threads\": 1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000001200, \"last_ns\": 1700000000000001200, "
		"\"arguments\": [{\"name\": \"depth\", \"type\": \"u32\", \"faults\": 0, \"count\": 1, \"min\": 1, "
		"\"max\": "
		"1, \"sum\": 1, \"histogram\": [{\"low\": 1, \"high\": 1, \"count\": 1}], \"values\": [{\"value\": 1, "
		"\"count\": 1}]}], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 6, \"name\": \"app:eval%return\", \"path\": \"/bin/app\", \"offset\": 8208, \"symbol\": "
		"\"eval\", \"build_id\": null, \"kind\": \"return\", \"function_offset\": 8192, \"count\": 1, "
		"\"threads\": "
		"1, \"more_threads\": false, \"first_ns\": 1700000000000004050, \"last_ns\": 1700000000000004050, "
		"\"arguments\": [], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 7, \"name\": \"libc:free\", \"path\": \"/lib/libc.so.6\", \"offset\": 12288, \"symbol\": "
		"\"free\", \"build_id\": null, \"kind\": \"entry\", \"function_offset\": 12288, \"count\": 0, "
		"\"threads\": "
		"0, \"more_threads\": false, \"arguments\": [{\"name\": \"ptr\", \"type\": \"x64\", \"faults\": 0, "
		"\"count\": 0, \"sum\": 0, \"histogram\": [], \"values\": []}]},\n"
		"  {\"id\": 8, \"name\": \"app:parse+0x8\", \"path\": \"/bin/app\", \"offset\": 4104, \"symbol\": "
		"\"parse+0x8\", \"build_id\": null, \"kind\": \"place\", \"count\": 1, \"threads\": 1, "
		"\"more_threads\": "
		"false, \"first_ns\": 1700000000000005000, \"last_ns\": 1700000000000005000, \"arguments\": "
		"[{\"name\": "
		"\"depth\", \"type\": \"u32\", \"faults\": 0, \"count\": 1, \"min\": 9, \"max\": 9, \"sum\": 9, "
		"\"histogram\": [{\"low\": 8, \"high\": 15, \"count\": 1}], \"values\": [{\"value\": 9, \"count\": "
		"1}]}], "
		"\"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 9, \"name\": \"libc:malloc2\", \"path\": \"/lib/libc.so.6\", \"offset\": 4096, \"symbol\": "
		"\"malloc\", \"build_id\": null, \"kind\": \"entry\", \"function_offset\": 4096, \"count\": 0, "
		"\"threads\": "
		"0, \"more_threads\": false, \"arguments\": [{\"name\": \"size\", \"type\": \"u64\", \"faults\": 0, "
		"\"count\": 0, \"sum\": 0, \"histogram\": [], \"values\": []}]}],\n"
		"\"aggregations\": [],\n"
		"\"calls\": [\n"
		"  {\"name\": \"app:parse\", \"path\": \"/bin/app\", \"function_offset\": 4096, \"symbol\": \"parse\", "
		"\"entry\": 3, \"return\": 4, \"count\": 1, \"over_losses\": 0, \"without_return\": 0, \"unwound\": 0, "
		"\"without_entry\": 0, "
		"\"open\": 0, \"too_deep\": 0, \"duration_ns\": {\"count\": 1, \"min\": 1000, \"max\": 1000, \"sum\": "
		"1000, "
		"\"histogram\": [{\"low\": 512, \"high\": 1023, \"count\": 1}], \"mean\": 1000, \"p50\": 1000, "
		"\"p90\": "
		"1000, \"p99\": 1000}, \"self_ns\": 980},\n"
		"  {\"name\": \"libc:malloc\", \"path\": \"/lib/libc.so.6\", \"function_offset\": 4096, \"symbol\": "
		"\"malloc\", \"entry\": 1, \"return\": 2, \"count\": 3, \"over_losses\": 1, \"without_return\": 0, "
		"\"unwound\": 0, "
		"\"without_entry\": 0, \"open\": 0, \"too_deep\": 0, \"duration_ns\": {\"count\": 3, \"min\": 20, "
		"\"max\": "
		"100, \"sum\": 160, \"histogram\": [{\"low\": 16, \"high\": 31, \"count\": 1}, {\"low\": 32, \"high\": "
		"63, "
		"\"count\": 1}, {\"low\": 64, \"high\": 127, \"count\": 1}], \"mean\": 53, \"p50\": 40, \"p90\": 100, "
		"\"p99\": 100}, \"self_ns\": 160},\n"
		"  {\"name\": \"app:eval\", \"path\": \"/bin/app\", \"function_offset\": 8192, \"symbol\": \"eval\", "
		"\"entry\": 5, \"return\": 6, \"count\": 0, \"over_losses\": 0, \"without_return\": 1, \"unwound\": 0, "
		"\"without_entry\": 1, "
		"\"open\": 0, \"too_deep\": 0}],\n"
		"\"calls_of_other_threads\": 0,\n"
		"\"processes\": [\n"
		"  {\"pid\": 10, \"parent\": 1, \"command\": \"make -j2\", \"begin_ns\": null, \"end_ns\": null, "
		"\"count\": "
		"5, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000002000},\n"
		"  {\"pid\": 20, \"parent\": 10, \"command\": \"cc -o \\u001b a.c\", \"begin_ns\": "
		"1700000000000001050, "
		"\"end_ns\": 1700000000000004800, \"count\": 7, \"first_ns\": 1700000000000001150, \"last_ns\": "
		"1700000000000004050},\n"
		"  {\"pid\": 25, \"parent\": 10, \"command\": \"true\", \"begin_ns\": 1700000000000004900, \"end_ns\": "
		"null, "
		"\"count\": 0}],\n"
		"\"threads\": [\n"
		"  {\"tid\": 10, \"pid\": 10, \"name\": \"make\", \"count\": 5, \"first_ns\": 1700000000000001000, "
		"\"last_ns\": 1700000000000002000},\n"
		"  {\"tid\": 20, \"pid\": 20, \"name\": \"cc\", \"count\": 4, \"first_ns\": 1700000000000001150, "
		"\"last_ns\": 1700000000000003020},\n"
		"  {\"tid\": 21, \"pid\": 20, \"name\": \"cc:worker\", \"count\": 3, \"first_ns\": "
		"1700000000000004000, "
		"\"last_ns\": 1700000000000004050},\n"
		"  {\"tid\": 30, \"pid\": null, \"name\": null, \"count\": 1, \"first_ns\": 1700000000000005000, "
		"\"last_ns\": 1700000000000005000}],\n"
		"\"events_of_other_threads\": 0,\n"
		"\"lost_events\": 2,\n"
		"\"lost_in_vforks\": 0,\n"
		"\"overwritten_packets\": 0,\n"
		"\"losses\": [\n"
		"  {\"cpu\": 0, \"events\": 2, \"packets\": 0, \"begin_ns\": 1700000000000003010, \"end_ns\": "
		"1700000000000003030}],\n"
		"\"gaps\": [],\n"
		"\"warnings\": []\n"
		"}\n";
	struct scratch scratch;

	enter(&scratch);
	write_two_processes(scratch.fd);
	assert_report(&(struct kymo_report_options){ .mode = KYMO_REPORT_JSON }, expected);
	leave(&scratch);
}

static void a_narrow_table_of_calls_keeps_count_and_total(void **state)
{
	struct kymo_report_options options = { .all = true };
	struct scratch scratch;

	enter(&scratch);
	write_two_processes(scratch.fd);
	for (options.width = 20; options.width < 200; options.width++) {
		char *text = reported(&options);
		const char *heading = strstr(text, "\nCALLS ");

		assert_non_null(heading);
		assert_non_null(strstr(heading, " COUNT "));
		assert_non_null(strstr(heading, " TOTAL"));
		if (options.width >= 40)
			assert_true((size_t)(strchr(heading + 1, '\n') - heading - 1) <= options.width);
		free(text);
	}
	leave(&scratch);
}

static void threads_that_cannot_be_told_apart_are_said(void **state)
{
	struct kymo_ctf_trace trace = timeline_trace();
	struct kymo_ctf_env env = { (char *)"thread_ids", (char *)"process" };
	struct kymo_report_options options = { 0 };
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	trace.env = &env;
	trace.n_env = 1;
	enter(&scratch);
	write_timeline(scratch.fd, &trace, two_processes, 3);
	text = reported(&options);
	assert_non_null(strstr(text,
			       "\nthreads of a process cannot be told apart in this recording: their calls may be "
			       "mixed up\n"));
	leave(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_summary_of_calls_looks_so),
		cmocka_unit_test(json_of_calls_looks_so),
		cmocka_unit_test(a_narrow_table_of_calls_keeps_count_and_total),
		cmocka_unit_test(threads_that_cannot_be_told_apart_are_said),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
