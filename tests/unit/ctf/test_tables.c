#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

/* An empty trace that can be written and freed. */
static struct kymo_ctf_trace empty_trace(void)
{
	return (struct kymo_ctf_trace){ .clock_frequency = 1000000000 };
}

/* Written and parsed again; `text_ret`, if not NULL, gets the env block, the caller's. */
static void again(const struct kymo_ctf_trace *trace, struct kymo_ctf_trace *ret, char **text_ret)
{
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;
	size_t size;

	scratch_init(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, trace));
	assert_int_equal(kymo_read_file(scratch.fd, "metadata", 64 << 20, &text, &size), 0);
	must(kymo_ctf_parse_metadata(text, size, ret));
	if (text_ret) {
		const char *begin = strstr(text, "env {"), *end = strstr(begin, "};\n");

		*text_ret = strndup(begin, (size_t)(end + 3 - begin));
	}
	scratch_deinit(&scratch);
}

static void tables_stand_in_the_environment_so(void **state)
{
	static const char expected[] = "env {\n"
				       "\tkymo_format = 1;\n"
				       "\tclock_invariant = 0;\n"
				       "\tmonotonic_offset_ns = 0;\n"
				       "\tprocess_10_1_0_0 = \"make -j2\";\n"
				       "\tprocess_11_10_500_600 = \"make -j2\";\n"
				       "\tprocess_11_10_600_0 = \"cc \\\"-DA=1\\\" a.c\";\n"
				       "\tthread_10_10 = \"make\";\n"
				       "\tthread_11_11_500 = \"make\";\n"
				       "\tthread_11_11_600 = \"cc\";\n"
				       "\tthread_12 = \"who\";\n"
				       "};\n";
	struct kymo_ctf_trace trace = empty_trace(), back;
	kymo_cleanup_free char *text = NULL;

	must(kymo_ctf_trace_add_thread(&trace, 12, 0, 0, "who"));
	must(kymo_ctf_trace_add_thread(&trace, 11, 11, 600, "cc"));
	must(kymo_ctf_trace_add_thread(&trace, 11, 11, 500, "make"));
	must(kymo_ctf_trace_add_thread(&trace, 10, 10, 0, "make"));
	must(kymo_ctf_trace_add_process(&trace, 10, 1, 0, "make -j2"));
	must(kymo_ctf_trace_add_process(&trace, 11, 10, 500, "make -j2"));
	kymo_ctf_trace_end_process(&trace, 11, 600);
	must(kymo_ctf_trace_add_process(&trace, 11, 10, 600, "cc \"-DA=1\" a.c"));
	again(&trace, &back, &text);
	assert_string_equal(text, expected);
	assert_int_equal(back.n_env, 0);
	assert_int_equal(back.n_threads, 4);
	assert_int_equal(back.n_processes, 3);
	assert_int_equal(back.processes[1].parent, 10);
	assert_int_equal(back.processes[1].begin, 500);
	assert_int_equal(back.processes[1].end, 600);
	assert_string_equal(back.processes[2].command, "cc \"-DA=1\" a.c");
	assert_int_equal(kymo_ctf_trace_n_pids(&back), 2);
	kymo_ctf_trace_deinit(&back);
	kymo_ctf_trace_deinit(&trace);
}

static void threads_of_the_only_process_are_named_by_their_tid_alone(void **state)
{
	struct kymo_ctf_trace trace = empty_trace(), back;
	kymo_cleanup_free char *text = NULL;

	must(kymo_ctf_trace_add_process(&trace, 10, 0, 0, "app"));
	must(kymo_ctf_trace_add_thread(&trace, 10, 10, 0, "main"));
	must(kymo_ctf_trace_add_thread(&trace, 11, 10, 0, "worker"));
	again(&trace, &back, &text);
	assert_non_null(strstr(text, "\tthread_10 = \"main\";\n\tthread_11 = \"worker\";\n"));
	assert_int_equal(back.threads[1].pid, 10);
	kymo_ctf_trace_deinit(&back);
	kymo_ctf_trace_deinit(&trace);
}

static void an_entry_that_comes_again_is_replaced(void **state)
{
	struct kymo_ctf_trace trace = empty_trace();

	for (int round = 0; round < 3; round++) {
		must(kymo_ctf_trace_add_thread(&trace, 7, round, 40, round ? "new" : "old"));
		must(kymo_ctf_trace_add_process(&trace, 7, round, 40, round ? "new" : "old"));
	}
	assert_int_equal(trace.n_threads, 1);
	assert_int_equal(trace.threads[0].pid, 2);
	assert_string_equal(trace.threads[0].comm, "new");
	assert_int_equal(trace.n_processes, 1);
	assert_string_equal(trace.processes[0].command, "new");
	kymo_ctf_trace_end_process(&trace, 8, 50);
	assert_int_equal(trace.processes[0].end, 0);
	kymo_ctf_trace_deinit(&trace);
}

static void an_id_below_zero_is_refused(void **state)
{
	struct kymo_ctf_trace trace = empty_trace();
	struct kymo_error *error = kymo_ctf_trace_add_thread(&trace, -1, 1, 0, "x");

	assert_non_null(error);
	kymo_error_destroy(error);
	error = kymo_ctf_trace_add_process(&trace, 1, -1, 0, "x");
	assert_non_null(error);
	kymo_error_destroy(error);
	kymo_ctf_trace_deinit(&trace);
}

static void an_id_means_the_thread_that_had_it_at_the_time(void **state)
{
	struct kymo_ctf_trace trace = empty_trace();

	must(kymo_ctf_trace_add_process(&trace, 5, 1, 100, "first"));
	kymo_ctf_trace_end_process(&trace, 5, 200);
	must(kymo_ctf_trace_add_process(&trace, 5, 1, 300, "second"));
	must(kymo_ctf_trace_add_process(&trace, 6, 1, 0, "other"));
	must(kymo_ctf_trace_add_thread(&trace, 50, 5, 100, "a"));
	must(kymo_ctf_trace_add_thread(&trace, 50, 6, 400, "b"));
	/* Its beginning may have been noticed late. */
	assert_string_equal(kymo_ctf_trace_process(&trace, 5, 0)->command, "first");
	assert_string_equal(kymo_ctf_trace_process(&trace, 5, 200)->command, "first");
	assert_string_equal(kymo_ctf_trace_process(&trace, 5, 201)->command, "second");
	assert_string_equal(kymo_ctf_trace_process(&trace, 5, 300)->command, "second");
	assert_string_equal(kymo_ctf_trace_process(&trace, 5, UINT64_MAX)->command, "second");
	assert_null(kymo_ctf_trace_process(&trace, 7, 100));
	assert_string_equal(kymo_ctf_trace_thread(&trace, 50, 99)->comm, "a");
	assert_string_equal(kymo_ctf_trace_thread(&trace, 50, 399)->comm, "a");
	assert_string_equal(kymo_ctf_trace_thread(&trace, 50, 400)->comm, "b");
	assert_null(kymo_ctf_trace_thread(&trace, 49, 400));
	assert_string_equal(kymo_ctf_trace_process_of(&trace, 50, 150)->command, "first");
	assert_string_equal(kymo_ctf_trace_process_of(&trace, 50, 350)->command, "second");
	assert_string_equal(kymo_ctf_trace_process_of(&trace, 50, 450)->command, "other");
	/* A thread that was not noticed, and the first one of a process. */
	assert_null(kymo_ctf_trace_process_of(&trace, 51, 450));
	assert_string_equal(kymo_ctf_trace_process_of(&trace, 6, 450)->command, "other");
	assert_int_equal(kymo_ctf_trace_n_threads_of(&trace, 50), 2);
	assert_int_equal(kymo_ctf_trace_n_processes_of(&trace, 5), 2);
	kymo_ctf_trace_deinit(&trace);
}

static void order_of_addition_does_not_matter(void **state)
{
	struct kymo_ctf_trace trace = empty_trace();
	unsigned int seed = 1;

	for (int i = 0; i < 5000; i++) {
		char name[32];
		int tid;

		seed = seed * 1103515245 + 12345;
		tid = (int)(seed >> 16) % 1000;
		snprintf(name, sizeof(name), "%d at %d", tid, i % 3);
		must(kymo_ctf_trace_add_thread(&trace, tid, 1, (uint64_t)(i % 3) * 10, name));
		must(kymo_ctf_trace_add_process(&trace, tid, 1, (uint64_t)(i % 3) * 10, name));
	}
	for (size_t i = 1; i < trace.n_threads; i++)
		assert_true(trace.threads[i - 1].tid < trace.threads[i].tid ||
			    (trace.threads[i - 1].tid == trace.threads[i].tid &&
			     trace.threads[i - 1].begin < trace.threads[i].begin));
	for (size_t i = 0; i < trace.n_threads; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%d at %d", trace.threads[i].tid, (int)trace.threads[i].begin / 10);
		assert_string_equal(trace.threads[i].comm, name);
		assert_string_equal(
			kymo_ctf_trace_process(&trace, trace.threads[i].tid, trace.threads[i].begin)->command, name);
	}
	kymo_ctf_trace_deinit(&trace);
}

/* Metadata with `lines` in its env block. */
static struct kymo_error *parse_with(const char *lines, struct kymo_ctf_trace *ret)
{
	struct kymo_ctf_trace trace = empty_trace();
	kymo_cleanup_free char *text = NULL;
	kymo_cleanup_free char *changed = NULL;
	struct scratch scratch;
	const char *at;

	scratch_init(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	assert_int_equal(kymo_read_file(scratch.fd, "metadata", 1 << 20, &text, NULL), 0);
	scratch_deinit(&scratch);
	at = strstr(text, "env {\n") + 6;
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, lines, at) >= 0);
	return kymo_ctf_parse_metadata(changed, strlen(changed), ret);
}

static void keys_that_are_nearly_of_a_table_stay_in_the_environment(void **state)
{
	static const char lines[] =
		"thread_ = \"\"; thread_x = \"\"; thread_07 = \"\"; thread_7_ = \"\"; thread_7_8_9_10 = \"\";\n"
		"thread_2147483648 = \"\"; thread_1_2147483648 = \"\"; thread_1_1_18446744073709551616 = \"\";\n"
		"process_1 = \"\"; process_1_2_3 = \"\"; process_1_2_3_4_5 = \"\"; process_1_2_03_4 = \"\"; threads_1 "
		"= 7;\n";
	struct kymo_ctf_trace trace;

	must(parse_with(lines, &trace));
	assert_int_equal(trace.n_threads, 0);
	assert_int_equal(trace.n_processes, 0);
	assert_int_equal(trace.n_env, 13);
	kymo_ctf_trace_deinit(&trace);
}

static void hostile_tables_are_read(void **state)
{
	static const char lines[] = "process_1_2_3_4 = \"a\"; process_1_5_3_9 = \"b\"; process_0_0_0_0 = \"\";\n"
				    "process_2147483647_2147483647_18446744073709551615_18446744073709551615 = 12;\n"
				    "thread_1_1 = \"a\"; thread_1_2 = \"b\"; thread_1 = \"c\"; thread_1_1_0 = \"d\";\n"
				    "x = \"y\"; thread_2147483647_0_18446744073709551615 = -5;\n";
	struct kymo_ctf_trace trace, back;

	must(parse_with(lines, &trace));
	assert_int_equal(trace.n_env, 1);
	assert_string_equal(kymo_ctf_trace_env(&trace, "x"), "y");
	assert_int_equal(trace.n_processes, 3);
	assert_int_equal(trace.n_threads, 2);
	assert_string_equal(trace.threads[1].comm, "-5");
	again(&trace, &back, NULL);
	assert_int_equal(back.n_processes, 3);
	assert_int_equal(back.n_threads, 2);
	kymo_ctf_trace_deinit(&back);
	kymo_ctf_trace_deinit(&trace);
}

static void a_key_of_a_table_cannot_be_set_as_environment(void **state)
{
	struct kymo_ctf_trace trace = empty_trace();
	struct scratch scratch;
	struct kymo_error *error;

	scratch_init(&scratch);
	must(kymo_ctf_trace_set_env(&trace, "thread_7", "x"));
	error = kymo_ctf_write_metadata(scratch.fd, &trace);
	assert_non_null(error);
	assert_string_equal(error->message, "'thread_7' cannot be a key of the trace's environment");
	kymo_error_destroy(error);
	kymo_ctf_trace_deinit(&trace);
	scratch_deinit(&scratch);
}

static void kinds_of_events_are_read_back_and_others_are_places(void **state)
{
	struct kymo_ctf_event events[] = {
		{ .id = 0,
		  .name = (char *)"e",
		  .path = (char *)"/a",
		  .kind = KYMO_CTF_ENTRY,
		  .function_offset = UINT64_MAX },
		{ .id = 1, .name = (char *)"r", .kind = KYMO_CTF_RETURN, .function_offset = 0 },
		{ .id = 2, .name = (char *)"p", .path = (char *)"/a", .offset = 3 },
	};
	struct kymo_ctf_trace trace = empty_trace(), back;
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	trace.events = events;
	trace.n_events = kymo_countof(events);
	scratch_init(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	assert_int_equal(kymo_read_file(scratch.fd, "metadata", 1 << 20, &text, NULL), 0);
	scratch_deinit(&scratch);
	assert_non_null(strstr(text, "\"file:/a?offset=0x0&kind=entry&function=0xffffffffffffffff\""));
	assert_non_null(strstr(text, "\"file:?offset=0x0&kind=return&function=0x0\""));
	assert_non_null(strstr(text, "\"file:/a?offset=0x3\""));
	/* A kind of a later kymo. */
	memcpy(strstr(text, "kind=entry"), "kind=extra", 10);
	must(kymo_ctf_parse_metadata(text, strlen(text), &back));
	assert_int_equal(back.events[0].kind, KYMO_CTF_PLACE);
	assert_int_equal(back.events[1].kind, KYMO_CTF_RETURN);
	assert_int_equal(back.events[2].kind, KYMO_CTF_PLACE);
	kymo_ctf_trace_deinit(&back);
}

static void babeltrace_reads_kinds_and_thousands_of_processes(void **state)
{
	struct kymo_ctf_event events[] = {
		{ .id = 0, .name = (char *)"e", .path = (char *)"/a", .kind = KYMO_CTF_ENTRY, .function_offset = 4096 },
		{ .id = 1,
		  .name = (char *)"r",
		  .path = (char *)"/a",
		  .kind = KYMO_CTF_RETURN,
		  .function_offset = 4096 },
	};
	struct kymo_ctf_trace trace = empty_trace();
	struct kymo_ctf_stream *stream;
	static struct payload payload;
	kymo_cleanup_free char *output = NULL;
	struct scratch scratch;
	char command[8192];
	int status;

	needs_command("babeltrace2");
	for (int pid = 1000; pid < 5000; pid++) {
		must(kymo_ctf_trace_add_process(&trace, pid, 999, (uint64_t)pid * 1000000, "cc \"a b\" -o \\ \xff\n"));
		kymo_ctf_trace_end_process(&trace, pid, (uint64_t)pid * 1000000 + 99);
		must(kymo_ctf_trace_add_thread(&trace, pid, pid, (uint64_t)pid * 1000000, "cc"));
	}
	trace.events = events;
	trace.n_events = kymo_countof(events);
	payload_add(&payload, &events[0], 1000, 1000, 0, NULL);
	payload_add(&payload, &events[1], 2000, 1000, 0, NULL);
	scratch_init(&scratch);
	stream = begin_trace(scratch.fd, &trace, "stream", 3);
	flush_payload(stream, &payload, 1000, 2000, 0, 0);
	kymo_ctf_stream_destroy(stream);
	snprintf(command, sizeof(command), "babeltrace2 --clock-seconds --no-delta %s 2>&1", scratch.path);
	output = run(command, &status);
	assert_string_equal(output, "[0.000001000] e: { cpu_id = 3 }, { tid = 1000 }, { }\n"
				    "[0.000002000] r: { cpu_id = 3 }, { tid = 1000 }, { }\n");
	assert_int_equal(status, 0);
	scratch_deinit(&scratch);
	trace.events = NULL;
	trace.n_events = 0;
	kymo_ctf_trace_deinit(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_stand_in_the_environment_so),
		cmocka_unit_test(threads_of_the_only_process_are_named_by_their_tid_alone),
		cmocka_unit_test(an_entry_that_comes_again_is_replaced),
		cmocka_unit_test(an_id_below_zero_is_refused),
		cmocka_unit_test(an_id_means_the_thread_that_had_it_at_the_time),
		cmocka_unit_test(order_of_addition_does_not_matter),
		cmocka_unit_test(keys_that_are_nearly_of_a_table_stay_in_the_environment),
		cmocka_unit_test(hostile_tables_are_read),
		cmocka_unit_test(a_key_of_a_table_cannot_be_set_as_environment),
		cmocka_unit_test(kinds_of_events_are_read_back_and_others_are_places),
		cmocka_unit_test(babeltrace_reads_kinds_and_thousands_of_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
