#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outputs.h"

#define THREADS(id) \
	{ \
		.threads = (const char *const[]){ id }, .n_threads = 1 \
	}
#define ONE_THREAD(id) .filter = THREADS(id)

static const struct kymo_report_options graph = { .mode = KYMO_REPORT_GRAPH };

/* A bit of everything: two threads, recursion, an exception, a loss, what began before and what did not end. */
static const struct moment everything[] = {
	{ 900, 7, MALLOC_RETURN, 0x10 },
	{ 1000, 7, PARSE },
	{ 1100, 7, MALLOC, 24 },
	{ 1150, 8, PARSE },
	{ 1160, 8, LINE, 3 },
	{ 1200, 7, MALLOC_RETURN, 0x5555 },
	{ 1250, 7, FREE, 0x5555 },
	{ 1300, 7, EVAL, 0 },
	{ 1310, 7, EVAL, 1 },
	{ 1320, 7, EVAL, 2 },
	{ 1330, 7, EVAL_RETURN },
	{ 1350, 7, EVAL_RETURN },
	{ 1400, 7, EVAL_RETURN },
	{ 1410, 7, EVAL, 9 },
	{ 1420, 7, MALLOC, 4 },
	{ 1234567, 7, PARSE_RETURN, (uint64_t)-1, 3, 2 },
	{ 2000000, 7, MALLOC, 5 },
	{ 2000010, 7, MALLOC_RETURN, 0, 0, 1 },
	{ 3000000, 8, MALLOC, 6 },
	{ 3000100, 0, LOSS, 5 },
	{ 3000900, 8, MALLOC_RETURN, 0 },
	{ 3001100, 0, LOSS },
	{ 3001200, 8, MALLOC, 1 },
	{ 9003001200, 8, MALLOC_RETURN, 2 },
	{ 9003001300, 8, PARSE_RETURN, 0, 1 },
	{ 9003001400, 8, EVAL, 3 },
};

static struct kymo_ctf_trace named_trace(void)
{
	static struct kymo_ctf_thread threads[] = {
		{ .tid = 7, .comm = (char *)"main" },
		{ .tid = 8, .comm = (char *)"worker\x1b" },
	};
	struct kymo_ctf_trace trace = timeline_trace();

	trace.threads = threads;
	trace.n_threads = kymo_countof(threads);
	return trace;
}

static void a_graph_looks_so(void **state)
{
	static const char expected[] =
		"     7 main                         | } malloc = 0x10  (no entry)\n"
		"     7 main                         | parse() {\n"
		"     7 main                0.100 us |   malloc(size=24) = 0x5555\n"
		"     8 worker\\x1b                   | parse() {\n"
		"     8 worker\\x1b                   |   * app:parse+0x8 depth=3\n"
		"     7 main                         |   free(ptr=0x5555)\n"
		"     7 main                         |   eval(depth=0) {\n"
		"     7 main                         |     eval(depth=1) {\n"
		"     7 main                0.010 us |       eval(depth=2)\n"
		"     7 main                0.040 us |     } eval\n"
		"     7 main                0.100 us |   } eval\n"
		"     7 main                         |   eval(depth=9) {\n"
		"     7 main                         |     malloc(size=4)  (no return)\n"
		"     7 main                         |   } eval  (no return)\n"
		"     7 main                1.234 ms | } parse = {ret=-1, n=(unknown)}\n"
		"     7 main                0.010 us | malloc(size=5) = (unknown)\n"
		"     8 worker\\x1b                   |   malloc(size=6) {\n"
		"--- lost 5 events within 1.0us ---\n"
		"     8 worker\\x1b                   | } malloc = 0x0  (spans a loss)\n"
		"     8 worker\\x1b          9.000 s  | malloc(size=1) = 0x2\n"
		"     8 worker\\x1b                   | } parse = {ret=0, n=1}  (spans a loss)\n"
		"     8 worker\\x1b                   | eval(depth=3) {\n"
		"--- 2 calls span a loss and are left out ---\n"
		"--- 2 calls were left without a return ---\n"
		"--- 1 return has no entry: the call began before the recording, or its entry was lost ---\n"
		"--- 1 call had not returned at the end ---\n";
	struct kymo_ctf_trace trace = named_trace();
	struct scratch scratch;

	enter(&scratch);
	write_timeline(scratch.fd, &trace, everything, kymo_countof(everything));
	assert_report(&graph, expected);
	leave(&scratch);
}

static void one_thread_and_one_function_can_be_had_alone(void **state)
{
	static const char of_thread[] = "           │ parse() {\n"
					"           │   * app:parse+0x8 depth=3\n"
					"           │   malloc(size=6) {\n"
					"--- lost 5 events within 1.0µs ---\n"
					"           │ } malloc = 0x0  (spans a loss)\n"
					"  9.000 s  │ malloc(size=1) = 0x2\n"
					"           │ } parse = {ret=0, n=1}  (spans a loss)\n"
					"           │ eval(depth=3) {\n"
					"--- 2 calls span a loss and are left out ---\n"
					"--- 1 call had not returned at the end ---\n";
	static const char of_function[] =
		"           │ eval(depth=0) {\n"
		"           │   eval(depth=1) {\n"
		"  0.010 µs │     eval(depth=2)\n"
		"  0.040 µs │   } eval\n"
		"  0.100 µs │ } eval\n"
		"           │ eval(depth=9) {\n"
		"           │   malloc(size=4)  (no return)\n"
		"           │ } eval  (no return)\n"
		"--- lost 5 events within 1.0µs ---\n"
		"--- 2 calls were left without a return ---\n"
		"--- 1 return has no entry: the call began before the recording, or its entry was lost ---\n";
	struct kymo_report_options options = { .mode = KYMO_REPORT_GRAPH, .unicode = true };
	struct kymo_ctf_trace trace = named_trace();
	struct scratch scratch;

	enter(&scratch);
	write_timeline(scratch.fd, &trace, everything, kymo_countof(everything));
	options.filter = (struct kymo_report_filter)THREADS("8");
	assert_report(&options, of_thread);
	options.filter = (struct kymo_report_filter)THREADS("7");
	options.function = "ev*";
	assert_report(&options, of_function);
	leave(&scratch);
}

static void processes_are_told_apart(void **state)
{
	static const char expected_graph[] =
		"    10/10     make                 4.000 us | parse() = {ret=0, n=0}\n"
		"    20/20     cc                   0.200 us | malloc(size=1) = 0x3\n"
		"    20/21     old                           | malloc(size=2) {\n"
		"    20/20     cc                            | malloc(size=4)  (no return)\n"
		"    20/20     cc                   0.100 us | eval(depth=0)\n"
		"    20/21     new                  0.100 us | malloc(size=6) = 0x7\n"
		"     -/22                                   | free(ptr=(fault))\n"
		"--- 2 calls were left without a return ---\n";
	static const char expected_events[] = "   0.000000000 [000]     10/10     make app:parse\n"
					      "   0.000000100 [000]     20/20     cc libc:malloc size=1\n"
					      "   0.000000200 [000]     20/21     old libc:malloc size=2\n"
					      "   0.000000300 [000]     20/20     cc libc:malloc%return ptr=0x3\n"
					      "   0.000001000 [000]     20/20     cc libc:malloc size=4\n"
					      "   0.000002000 [000]     20/20     cc app:eval depth=0\n"
					      "   0.000002100 [000]     20/20     cc app:eval%return\n"
					      "   0.000002200 [000]     20/21     new libc:malloc size=6\n"
					      "   0.000002300 [000]     20/21     new libc:malloc%return ptr=0x7\n"
					      "   0.000002400 [000]      -/22     libc:free ptr=(fault)\n"
					      "   0.000004000 [000]     10/10     make app:parse%return ret=0 n=0\n";
	static const struct moment moments[] = {
		{ 1000, 10, PARSE },
		{ 1100, 20, MALLOC, 1 },
		{ 1200, 21, MALLOC, 2 },
		{ 1300, 20, MALLOC_RETURN, 3 },
		/* An exec of 20, and another thread with the id 21. */
		{ 2000, 20, MALLOC, 4 },
		{ 3000, 20, EVAL, 0 },
		{ 3100, 20, EVAL_RETURN },
		{ 3200, 21, MALLOC, 6 },
		{ 3300, 21, MALLOC_RETURN, 7 },
		{ 3400, 22, FREE, 0, 0, 1 },
		{ 5000, 10, PARSE_RETURN, 0, 0 },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct kymo_report_options options = { .mode = KYMO_REPORT_EVENTS };
	struct scratch scratch;

	trace.threads = NULL;
	must(kymo_ctf_trace_add_process(&trace, 10, 1, 0, "make -j2"));
	must(kymo_ctf_trace_add_process(&trace, 20, 10, 1050, "make -j2"));
	must(kymo_ctf_trace_add_process(&trace, 20, 10, 2500, "cc a.c"));
	must(kymo_ctf_trace_add_thread(&trace, 10, 10, 0, "make"));
	must(kymo_ctf_trace_add_thread(&trace, 20, 20, 0, "cc"));
	must(kymo_ctf_trace_add_thread(&trace, 21, 20, 1150, "old"));
	must(kymo_ctf_trace_add_thread(&trace, 21, 20, 3150, "new"));
	enter(&scratch);
	write_timeline(scratch.fd, &trace, moments, kymo_countof(moments));
	assert_report(&graph, expected_graph);
	assert_report(&options, expected_events);
	leave(&scratch);
	trace.n_events = 0;
	trace.events = NULL;
	trace.n_env = 0;
	trace.env = NULL;
	kymo_ctf_trace_deinit(&trace);
}

static void a_call_that_others_wait_for_too_long_opens_a_block(void **state)
{
	enum { N = 5000 };
	struct moment *moments = calloc(2 * N + 2, sizeof(*moments));
	struct kymo_ctf_trace trace = named_trace();
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;
	size_t n = 0, lines = 0;

	assert_non_null(moments);
	moments[n++] = (struct moment){ 1000, 7, PARSE };
	for (uint64_t i = 0; i < N; i++) {
		moments[n++] = (struct moment){ 2000 + i * 100, 8, MALLOC, i };
		moments[n++] = (struct moment){ 2050 + i * 100, 8, MALLOC_RETURN, i };
	}
	moments[n++] = (struct moment){ 1001000, 7, PARSE_RETURN, 1, 2 };
	enter(&scratch);
	write_timeline(scratch.fd, &trace, moments, n);
	text = reported(&graph);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, N + 2);
	assert_ptr_equal(strstr(text, "     7 main                         | parse() {\n"), text);
	assert_non_null(strstr(text, "     8 worker\\x1b          0.050 us | malloc(size=4999) = 0x1387\n"));
	assert_non_null(strstr(text, "     7 main                1.000 ms | } parse = {ret=1, n=2}\n"));
	leave(&scratch);
	free(moments);
}

static void two_probes_at_an_entry_are_one_call(void **state)
{
	static const char expected[] = "           | malloc(size=1) {\n"
				       "           |   * libc:malloc2 size=1\n"
				       "  0.100 us | } malloc = 0x2\n"
				       "           | malloc(size=1) {\n"
				       "           |   * libc:malloc2 size=1\n"
				       "  0.200 us | } malloc = 0x2\n";
	static const struct moment moments[] = {
		{ 1000, 7, MALLOC, 1 }, { 1000, 7, MALLOC_AGAIN, 1 }, { 1100, 7, MALLOC_RETURN, 2 },
		{ 1200, 7, MALLOC, 1 }, { 1200, 7, MALLOC_AGAIN, 1 }, { 1400, 7, MALLOC_RETURN, 2 },
	};
	struct kymo_report_options options = { .mode = KYMO_REPORT_GRAPH, ONE_THREAD("7") };
	struct kymo_ctf_trace trace = timeline_trace();
	struct scratch scratch;

	enter(&scratch);
	write_timeline(scratch.fd, &trace, moments, kymo_countof(moments));
	assert_report(&options, expected);
	leave(&scratch);
}

static void without_returns_the_graph_says_so(void **state)
{
	static const char expected[] = "           | * libc:read fd=-1 buf=0x7fff0000 int=200\n"
				       "           | * libc:read fd=3 buf=0x7fff0010 int=201\n"
				       "--- lost 5 events within 1.0s ---\n"
				       "           | * libc:read fd=3 buf=(fault) int=202\n"
				       "--- no function has a probe at its entry (-p) and one at its return (-r) ---\n";
	struct kymo_report_options options = { .mode = KYMO_REPORT_GRAPH, ONE_THREAD("4243") };
	struct scratch scratch;

	enter(&scratch);
	write_synthetic(scratch.fd, 5);
	assert_report(&options, expected);
	leave(&scratch);
}

static void nesting_beyond_the_limit_is_said(void **state)
{
	enum { N = 5000 };
	struct moment *moments = calloc(2 * N, sizeof(*moments));
	struct kymo_report_options options = { .mode = KYMO_REPORT_GRAPH, ONE_THREAD("7") };
	struct kymo_ctf_trace trace = timeline_trace();
	kymo_cleanup_free char *text = NULL;
	kymo_cleanup_free char *summary = NULL;
	struct scratch scratch;

	assert_non_null(moments);
	for (uint64_t i = 0; i < N; i++) {
		moments[i] = (struct moment){ 1000 + i, 7, EVAL, i };
		moments[2 * N - 1 - i] = (struct moment){ 1000 + 2 * N - i, 7, EVAL_RETURN };
	}
	enter(&scratch);
	write_timeline(scratch.fd, &trace, moments, 2 * N);
	text = reported(&options);
	assert_non_null(strstr(text, "} eval  (nested too deep)\n"
				     "--- 904 calls are left out: too many calls were nested in them ---\n"));
	options = (struct kymo_report_options){ .mode = KYMO_REPORT_SUMMARY, .width = 120 };
	summary = reported(&options);
	assert_non_null(strstr(summary, "\napp:eval      4,096   2ns "));
	assert_non_null(strstr(summary, "\n904 calls are left out: too many calls were nested in them\n"));
	leave(&scratch);
	free(moments);
}

static void a_tree_looks_so(void **state)
{
	static const char expected[] = "  TOTAL     SELF       COUNT  CALL\n"
				       "  2.9us    2.1us           2  parse\n"
				       "  1.1us    1.0us           2    eval\n"
				       "   90ns     87ns           1      eval\n"
				       "  450ns    450ns           3    malloc\n"
				       "1 more path of less than 0.5 % of the time (--all shows them)\n"
				       "1 call had not returned at the end\n";
	static const char all_of_thread[] = "  TOTAL     SELF       COUNT  CALL\n"
					    "  2.0us    1.3us           1  parse\n"
					    "  600ns    510ns           1    eval\n"
					    "   90ns     87ns           1      eval\n"
					    "    3ns      3ns           1        malloc\n"
					    "  100ns    100ns           1    malloc\n";
	static const struct moment moments[] = {
		{ 1000, 7, PARSE },         { 1100, 7, MALLOC, 1 },
		{ 1200, 7, MALLOC_RETURN }, { 1300, 7, EVAL, 0 },
		{ 1310, 7, EVAL, 1 },       { 1311, 7, MALLOC, 1 },
		{ 1314, 7, MALLOC_RETURN }, { 1400, 7, EVAL_RETURN },
		{ 1900, 7, EVAL_RETURN },   { 3000, 7, PARSE_RETURN, 1, 1 },
		{ 3100, 8, PARSE },         { 3200, 8, MALLOC, 1 },
		{ 3250, 8, MALLOC_RETURN }, { 4000, 8, PARSE_RETURN },
		{ 5000, 9, PARSE },         { 5100, 9, EVAL, 2 },
		{ 5600, 9, EVAL_RETURN },   { 6000, 9, MALLOC, 1 },
		{ 6300, 9, MALLOC_RETURN },
	};
	struct kymo_report_options options = { .mode = KYMO_REPORT_TREE };
	struct kymo_ctf_trace trace = timeline_trace();
	struct scratch scratch;

	enter(&scratch);
	write_timeline(scratch.fd, &trace, moments, kymo_countof(moments));
	assert_report(&options, expected);
	options.filter = (struct kymo_report_filter)THREADS("7");
	options.all = true;
	assert_report(&options, all_of_thread);
	leave(&scratch);
}

static void a_tree_of_many_paths_adds_up(void **state)
{
	enum { N = 2000 };
	struct moment *moments = calloc(2 * N, sizeof(*moments));
	struct kymo_report_options options = { .mode = KYMO_REPORT_TREE, .all = true };
	static const int entries[] = { MALLOC, PARSE, EVAL };
	struct kymo_ctf_trace trace = timeline_trace();
	struct scratch scratch;
	uint64_t sum = 0;
	char *text;

	assert_non_null(moments);
	for (uint64_t i = 0; i < N; i++) {
		int event = entries[i * i % 7 % 3];

		moments[i] = (struct moment){ 1000 + i, 7, event, i };
		moments[2 * N - 1 - i] = (struct moment){ 1000 + 2 * N - i, 7, event + 1 };
	}
	enter(&scratch);
	write_timeline(scratch.fd, &trace, moments, 2 * N);
	text = reported(&options);
	/* Each path's own time is 2 ns, that of the outermost 2 from its beginning to the next and back. */
	for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		unsigned long total, self, count;
		char unit[8];

		assert_int_equal(sscanf(line, "%lu%*[.0-9]%7[nu]s %luns %lu", &total, unit, &self, &count) == 4 ||
					 sscanf(line, "%lu%7[nu]s %luns %lu", &total, unit, &self, &count) == 4,
				 1);
		sum += self;
	}
	assert_int_equal(sum, 2 * N);
	leave(&scratch);
	free(text);
	free(moments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_looks_so),
		cmocka_unit_test(one_thread_and_one_function_can_be_had_alone),
		cmocka_unit_test(processes_are_told_apart),
		cmocka_unit_test(a_call_that_others_wait_for_too_long_opens_a_block),
		cmocka_unit_test(two_probes_at_an_entry_are_one_call),
		cmocka_unit_test(without_returns_the_graph_says_so),
		cmocka_unit_test(nesting_beyond_the_limit_is_said),
		cmocka_unit_test(a_tree_looks_so),
		cmocka_unit_test(a_tree_of_many_paths_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
