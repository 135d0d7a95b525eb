/* Fields of bytes: a sequence in the metadata, and records of different sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

static struct payload payload;

static struct kymo_ctf_trace bytes_trace(void)
{
	static struct kymo_ctf_field fields[] = {
		{ (char *)"n_length", KYMO_TYPE_U16, NULL, 0, NULL, false },
		{ (char *)"memory", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
		{ (char *)"more", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
		{ (char *)"end", KYMO_TYPE_U8, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_event events[] = {
		{ .id = 3, .name = (char *)"call", .fields = fields, .n_fields = 4, .has_faults = true, .size = 20 }
	};
	struct kymo_ctf_trace trace = synthetic_trace();

	trace.events = events;
	trace.n_events = 1;
	return trace;
}

static uint64_t of(const char *length_and_bytes)
{
	return (uintptr_t)length_and_bytes;
}

static void bytes_are_a_length_and_a_sequence(void **state)
{
	struct kymo_ctf_trace trace = bytes_trace(), back;
	kymo_cleanup_free char *text = metadata_of(&trace);

	assert_non_null(strstr(
		text,
		"\t\tu16 _n_length;\n\t\tu16 _memory_length;\n\t\tx8 _memory[_memory_length];\n\t\tu16 _more_length;\n"
		"\t\tx8 _more[_more_length];\n\t\tu8 _end;\n"));
	must(kymo_ctf_parse_metadata(text, strlen(text), &back));
	assert_int_equal(back.events[0].n_fields, 4);
	assert_int_equal(back.events[0].size, 20);
	for (uint32_t i = 0; i < 4; i++) {
		assert_string_equal(back.events[0].fields[i].name, trace.events[0].fields[i].name);
		assert_int_equal(back.events[0].fields[i].type, trace.events[0].fields[i].type);
	}
	kymo_ctf_trace_deinit(&back);
}

static void a_sequence_without_its_length_is_refused(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "_memory[_memory_length]", "_memory[_n_length]" },
		{ "_memory[_memory_length]", "_memory[16]" },
		{ "x8 _memory[", "f64 _memory[" },
		{ "x8 _memory[", "string _memory[" },
		{ "u16 _memory_length", "u32 _memory_length" },
		{ "u16 _memory_length", "u16 _memory_size" },
		{ "_memory_length];", "_memory_length;" },
		{ "\t\tu16 _memory_length;\n", "" },
		{ "u8 _end", "bytes _end" },
	};
	struct kymo_ctf_trace trace = bytes_trace(), back;
	kymo_cleanup_free char *text = metadata_of(&trace);

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		kymo_cleanup_free char *changed = replaced(text, cases[i].from, cases[i].to);
		struct kymo_error *error;

		error = kymo_ctf_parse_metadata(changed, strlen(changed), &back);
		if (!error)
			fail_msg("%s is taken for %s", cases[i].to, cases[i].from);
		kymo_error_destroy(error);
	}
}

static void a_name_that_is_anothers_length_is_refused(void **state)
{
	struct kymo_ctf_field fields[] = { { (char *)"a", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
					   { (char *)"a_length", KYMO_TYPE_U8, NULL, 0, NULL, false } };
	struct kymo_ctf_event event = { .id = 1, .name = (char *)"x", .fields = fields, .n_fields = 2 };
	struct kymo_ctf_trace trace = synthetic_trace();
	struct scratch scratch;
	struct kymo_error *error;

	trace.events = &event;
	trace.n_events = 1;
	scratch_init(&scratch);
	error = kymo_ctf_write_metadata(scratch.fd, &trace);
	assert_non_null(error);
	kymo_error_destroy(error);
	scratch_deinit(&scratch);
}

/* All whole records of one packet whose last `cut` bytes are not there: how many, and what the last has. */
static size_t read_cut(size_t cut, char *last)
{
	struct kymo_ctf_trace trace = bytes_trace();
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_ctf_stream *stream;
	struct kymo_error *error;
	struct scratch scratch;
	size_t n = 0, size;

	scratch_init(&scratch);
	stream = begin_trace(scratch.fd, &trace, "s", 0);
	payload.size = 0;
	payload_add(&payload, &trace.events[0], 1, 7, 0, (uint64_t[]){ 1, of("\3\0abc"), of("\0\0"), 9 });
	payload_add(&payload, &trace.events[0], 2, 7, 4, (uint64_t[]){ 2, of("\0\0"), of("\1\0x"), 8 });
	payload.size -= cut;
	flush_payload(stream, &payload, 1, 2, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_open(scratch.path, &reader));
	for (; kymo_ctf_next(reader, &record, &error); n++) {
		const char *bytes = kymo_ctf_bytes(&record, n ? 2 : 1, &size);

		snprintf(last, 16, "%.*s %u %u", (int)size, bytes, (unsigned int)record.values[3], record.faults);
	}
	must(error);
	kymo_ctf_close(reader);
	scratch_deinit(&scratch);
	return n;
}

static void records_have_their_bytes(void **state)
{
	char last[16];

	assert_int_equal(read_cut(0, last), 2);
	assert_string_equal(last, "x 8 4");
	for (size_t cut = 1; cut <= 21; cut++) {
		assert_int_equal(read_cut(cut, last), 1);
		assert_string_equal(last, "abc 9 0");
	}
	assert_int_equal(read_cut(22, last), 0);
}

static void a_record_can_have_64_kilobytes(void **state)
{
	static uint8_t bytes[2 + UINT16_MAX] = { 0xff, 0xff };
	struct kymo_ctf_trace trace = bytes_trace();
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_ctf_stream *stream;
	struct kymo_error *error;
	struct scratch scratch;
	size_t n = 0, size;

	scratch_init(&scratch);
	stream = begin_trace(scratch.fd, &trace, "s", 0);
	payload.size = 0;
	memset(bytes + 2, 'x', sizeof(bytes) - 2);
	for (uint64_t i = 0; i < 12; i++)
		payload_add(&payload, &trace.events[0], i, 7, 0, (uint64_t[]){ 1, (uintptr_t)bytes, of("\0\0"), i });
	flush_payload(stream, &payload, 0, 12, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_open(scratch.path, &reader));
	for (; kymo_ctf_next(reader, &record, &error); n++) {
		const char *at = kymo_ctf_bytes(&record, 1, &size);

		assert_int_equal(size, UINT16_MAX);
		assert_int_equal(at[size - 1], 'x');
		assert_int_equal(record.values[3], n);
	}
	must(error);
	assert_int_equal(n, 12);
	kymo_ctf_close(reader);
	scratch_deinit(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_a_length_and_a_sequence),
		cmocka_unit_test(a_sequence_without_its_length_is_refused),
		cmocka_unit_test(a_name_that_is_anothers_length_is_refused),
		cmocka_unit_test(records_have_their_bytes),
		cmocka_unit_test(a_record_can_have_64_kilobytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
