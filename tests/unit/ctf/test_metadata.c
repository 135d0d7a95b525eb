#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

static void assert_error(struct kymo_error *error, enum kymo_error_code code, const char *message)
{
	assert_non_null(error);
	assert_int_equal(error->code, code);
	assert_string_equal(error->message, message);
	kymo_error_destroy(error);
}

static void assert_same_text(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_ptr_equal(a, b);
}

static void assert_same_tables(const struct kymo_ctf_trace *a, const struct kymo_ctf_trace *b)
{
	assert_int_equal(a->n_threads, b->n_threads);
	for (size_t i = 0; i < a->n_threads; i++) {
		assert_int_equal(a->threads[i].tid, b->threads[i].tid);
		assert_int_equal(a->threads[i].pid, b->threads[i].pid);
		assert_true(a->threads[i].begin == b->threads[i].begin);
		assert_string_equal(a->threads[i].comm, b->threads[i].comm);
	}
	assert_int_equal(a->n_processes, b->n_processes);
	for (size_t i = 0; i < a->n_processes; i++) {
		assert_int_equal(a->processes[i].pid, b->processes[i].pid);
		assert_int_equal(a->processes[i].parent, b->processes[i].parent);
		assert_true(a->processes[i].begin == b->processes[i].begin);
		assert_true(a->processes[i].end == b->processes[i].end);
		assert_string_equal(a->processes[i].command, b->processes[i].command);
	}
}

static void assert_reads_back(struct kymo_ctf_trace trace)
{
	struct kymo_ctf_trace back;
	kymo_cleanup_free char *text = metadata_of(&trace);

	must(kymo_ctf_parse_metadata(text, strlen(text), &back));
	assert_memory_equal(back.uuid, trace.uuid, 16);
	assert_int_equal(back.clock_frequency, trace.clock_frequency);
	assert_int_equal(back.clock_offset_s, trace.clock_offset_s);
	assert_int_equal(back.clock_offset, trace.clock_offset);
	assert_true(back.clock_is_invariant);
	assert_true(back.monotonic_offset_ns == trace.monotonic_offset_ns);
	assert_int_equal(back.n_env, trace.n_env);
	for (size_t i = 0; i < trace.n_env; i++) {
		assert_string_equal(back.env[i].key, trace.env[i].key);
		assert_string_equal(back.env[i].value, trace.env[i].value);
	}
	assert_same_tables(&back, &trace);
	assert_int_equal(back.n_events, trace.n_events);
	for (size_t i = 0; i < trace.n_events; i++) {
		const struct kymo_ctf_event *a = &trace.events[i], *b = &back.events[i];

		assert_int_equal(b->id, a->id);
		assert_int_equal(b->offset, a->offset);
		assert_int_equal(b->size, a->size);
		assert_int_equal(b->has_faults, a->has_faults);
		assert_int_equal(b->kind, a->kind);
		assert_true(b->function_offset == a->function_offset);
		assert_same_text(b->name, a->name);
		assert_same_text(b->path, a->path);
		assert_same_text(b->symbol, a->symbol);
		assert_same_text(b->build_id, a->build_id);
		assert_same_text(b->source, a->source);
		assert_same_text(b->format, a->format);
		assert_int_equal(b->n_fields, a->n_fields);
		for (uint32_t j = 0; j < a->n_fields; j++) {
			assert_string_equal(b->fields[j].name, a->fields[j].name);
			assert_int_equal(b->fields[j].type, a->fields[j].type);
		}
	}
	kymo_ctf_trace_deinit(&back);
}

static void what_is_written_is_read_back(void **state)
{
	assert_reads_back(synthetic_trace());
	assert_reads_back(marked_trace());
}

static void a_marker_is_written_so(void **state)
{
	static const char expected[] =
		"event {\n"
		"\tname = \"app:open\";\n"
		"\tid = 1;\n"
		"\tstream_id = 0;\n"
		"\tmodel.emf.uri = \"file:/bin/app?offset=0x1234&symbol=serve%2b0x4&build-id=01fe&kind=marker&"
		"source=server.c:120&format=fd%3d%25d%20path%3d%25s%20ratio%3d%25f%20why%3d%25s%20flags%3d%25x\";\n"
		"\tfields := struct {\n"
		"\t\ts32 _fd;\n"
		"\t\tstring _path;\n"
		"\t\tf64 _ratio;\n"
		"\t\tstring _why;\n"
		"\t\tx32 _flags;\n"
		"\t};\n"
		"};\n";
	static const char type[] =
		":= x64;\n"
		"typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; byte_order = le; } := f64;\n"
		"trace {\n";
	struct kymo_ctf_trace trace = marked_trace();
	kymo_cleanup_free char *text = metadata_of(&trace);

	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, type));
}

static void doubles_are_declared_only_where_there_are_any(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	kymo_cleanup_free char *text = metadata_of(&trace);

	assert_null(strstr(text, "f64"));
}

static void a_kind_of_a_later_kymo_is_a_place(void **state)
{
	struct kymo_ctf_trace trace = marked_trace(), back;
	kymo_cleanup_free char *text = metadata_of(&trace);
	kymo_cleanup_free char *changed = replaced(text, "kind=marker", "kind=banner");

	must(kymo_ctf_parse_metadata(changed, strlen(changed), &back));
	assert_int_equal(back.events[0].kind, KYMO_CTF_PLACE);
	assert_string_equal(back.events[0].source, "server.c:120");
	assert_int_equal(back.events[1].kind, KYMO_CTF_MARKER);
	kymo_ctf_trace_deinit(&back);
}

static void an_event_is_written_so(void **state)
{
	static const char expected[] =
		"event {\n"
		"\tname = \"libc:read\";\n"
		"\tid = 7;\n"
		"\tstream_id = 0;\n"
		"\tmodel.emf.uri = \"file:/tmp/a%20b%3f%26%22%25%c3%a9?offset=0x0&symbol=f%3ca,%20b%3e%2b0x12\";\n"
		"\tcontext := struct { x8 faults; };\n"
		"\tfields := struct {\n"
		"\t\ts32 _fd;\n"
		"\t\tx64 _buf;\n"
		"\t\tu8 _int;\n"
		"\t};\n"
		"};\n";
	struct kymo_ctf_trace trace = synthetic_trace();
	kymo_cleanup_free char *text = metadata_of(&trace);

	assert_non_null(strstr(text, expected));
}

static void text_that_ends_early_is_an_error_or_has_fewer_events(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace(), back;
	kymo_cleanup_free char *text = metadata_of(&trace);

	for (size_t size = 0; size < strlen(text) - 1; size++) {
		/* In memory of its own, so that reading over the end shows. */
		kymo_cleanup_free char *cut = malloc(size + 1);
		struct kymo_error *error;

		memcpy(cut, text, size);
		error = kymo_ctf_parse_metadata(cut, size, &back);
		if (error) {
			assert_int_equal(error->code, KYMO_ERROR_BAD_DATA);
			kymo_error_destroy(error);
			continue;
		}
		assert_true(back.n_events < trace.n_events);
		kymo_ctf_trace_deinit(&back);
	}
}

static void an_error_tells_line_and_cause(void **state)
{
	static const struct {
		const char *from, *to, *message;
	} cases[] = {
		{ "minor = 8", "minor = 9", "metadata:16: '8' was expected, not '9'" },
		{ "kymo_format = 1", "kymo_format = 3",
		  "metadata:26: the trace has a format of another kymo; this one reads 1 and 2" },
		{ "pid = ", "command = ", "metadata:33: 'command' is twice in the environment" },
		{ "freq = 1000000000", "freq = 0", "metadata:38: the clock's frequency is 0" },
		{ "freq = 1000000000", "freq = 18446744073709551616", "metadata:38: a number is out of range" },
		{ "size = 44;", "size = 45;", "metadata:56: '44' was expected, not '45'" },
		{ "id = 7;", "id = 0;", "metadata:73: event id 0 is used twice" },
		{ "id = 7;", "id = 1048576;", "metadata:73: a number is out of range" },
		{ "s32 _fd", "s33 _fd", "metadata:78: 'type' was expected, not 's33'" },
		{ "s32 _fd", "s32 fd", "metadata:78: '_name' was expected, not 'fd'" },
		{ "s32 _fd", "f64 _fd", "metadata:78: 'type' was expected, not 'f64'" },
		{ "s32 _fd", "string { encoding = ASCII; } _fd", "metadata:78: '_name' was expected, not '{'" },
		{ "&symbol=f", "&source=a&source=b&symbol=f", "metadata:75: the event's uri is malformed" },
		{ "%20b", "%2", "metadata:75: the event's uri is malformed" },
		{ "\"python3 -c", "\"python3\n -c", "metadata:29: a string has no end" },
		{ "typealias", "x", "metadata:2: 'typealias' was expected, not 'x'" },
		{ "evil", "evil\\q", "metadata:32: a string has an escape that is not known" },
		{ "u64 _size;", "u64 _a;u64 _b;u64 _c;u64 _d;u64 _e;u64 _f;u64 _g;u64 _h;u64 _i;",
		  "metadata:68: an event has more than 8 fields" },
	};
	struct kymo_ctf_trace trace = synthetic_trace(), back;
	kymo_cleanup_free char *text = metadata_of(&trace);

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		kymo_cleanup_free char *changed = replaced(text, cases[i].from, cases[i].to);

		assert_error(kymo_ctf_parse_metadata(changed, strlen(changed), &back), KYMO_ERROR_BAD_DATA,
			     cases[i].message);
	}
}

static void comments_and_white_space_are_free(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace(), back;
	kymo_cleanup_free char *text = metadata_of(&trace);
	kymo_cleanup_free char *changed = replaced(text, "env {", "// a line\n\r\tenv/* and \n ** */{");

	must(kymo_ctf_parse_metadata(changed, strlen(changed), &back));
	kymo_ctf_trace_deinit(&back);
}

static void what_babeltrace_could_not_read_is_not_written(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	struct kymo_ctf_env key = { (char *)"event", (char *)"" };
	struct kymo_ctf_field twice[] = { { (char *)"a", KYMO_TYPE_U8, NULL, 0, NULL, false },
					  { (char *)"a", KYMO_TYPE_U8, NULL, 0, NULL, false } };
	struct kymo_ctf_field dash = { (char *)"a-b", KYMO_TYPE_U8, NULL, 0, NULL, false };
	struct kymo_ctf_event events[2] = {
		{ .id = 3, .name = (char *)"one", .fields = twice, .n_fields = 2 },
		{ .id = 3, .name = (char *)"two", .fields = &dash, .n_fields = 1 },
	};
	struct scratch scratch;

	scratch_init(&scratch);
	trace.env = &key;
	trace.n_env = 1;
	assert_error(kymo_ctf_write_metadata(scratch.fd, &trace), KYMO_ERROR_FAILED,
		     "'event' cannot be a key of the trace's environment");
	trace.n_env = 0;
	trace.events = events;
	trace.n_events = 1;
	assert_error(kymo_ctf_write_metadata(scratch.fd, &trace), KYMO_ERROR_USAGE, "one: two arguments are named 'a'");
	trace.events = events + 1;
	assert_error(kymo_ctf_write_metadata(scratch.fd, &trace), KYMO_ERROR_USAGE,
		     "two: 'a-b' is no name for an argument");
	events[0].n_fields = events[1].n_fields = 0;
	trace.events = events;
	trace.n_events = 2;
	assert_error(kymo_ctf_write_metadata(scratch.fd, &trace), KYMO_ERROR_FAILED, "two: event id 3 is used twice");
	assert_int_equal(faccessat(scratch.fd, "metadata", F_OK, 0), -1);
	scratch_deinit(&scratch);
}

static void keys_of_the_environment_are_replaced_and_found(void **state)
{
	struct kymo_ctf_trace trace = { .n_env = 0 };
	char key[16], value[16];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100; i++) {
			snprintf(key, sizeof(key), "k%d", i);
			snprintf(value, sizeof(value), "%d", i * (round + 1));
			must(kymo_ctf_trace_set_env(&trace, key, value));
		}
	}
	assert_int_equal(trace.n_env, 100);
	assert_string_equal(kymo_ctf_trace_env(&trace, "k99"), "198");
	assert_null(kymo_ctf_trace_env(&trace, "k100"));
	kymo_ctf_trace_deinit(&trace);
}

static void ticks_become_nanoseconds_without_overflow(void **state)
{
	struct kymo_ctf_trace trace = {
		.clock_frequency = 3000000000,
		.clock_offset_s = 1700000000,
		.clock_offset = 1500000000,
	};

	assert_true(kymo_ctf_duration_ns(&trace, 3) == 1);
	assert_true(kymo_ctf_duration_ns(&trace, 3000000000ull * 1000000000) == 1000000000000000000);
	assert_true(kymo_ctf_wall_ns(&trace, 0) == 1700000000500000000);
	/* A year of uptime. */
	assert_true(kymo_ctf_wall_ns(&trace, 3000000000ull * 31536000) == 1731536000500000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(an_event_is_written_so),
		cmocka_unit_test(a_marker_is_written_so),
		cmocka_unit_test(doubles_are_declared_only_where_there_are_any),
		cmocka_unit_test(a_kind_of_a_later_kymo_is_a_place),
		cmocka_unit_test(text_that_ends_early_is_an_error_or_has_fewer_events),
		cmocka_unit_test(an_error_tells_line_and_cause),
		cmocka_unit_test(comments_and_white_space_are_free),
		cmocka_unit_test(what_babeltrace_could_not_read_is_not_written),
		cmocka_unit_test(keys_of_the_environment_are_replaced_and_found),
		cmocka_unit_test(ticks_become_nanoseconds_without_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
