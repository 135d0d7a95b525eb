/* Fields with names for their values, characters and arrays of both: in the metadata, and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

static struct kymo_naming *states(void)
{
	struct kymo_naming *naming = kymo_naming_create();

	assert_int_equal(kymo_naming_add(naming, "IDLE", 4, 0), 0);
	assert_int_equal(kymo_naming_add(naming, "a \"b\"\\::<int>\n", 14, 7), 0);
	assert_int_equal(kymo_naming_add(naming, "GONE", 4, -1), 0);
	return naming;
}

#define N_FIELDS 5

/* The text of the trace's metadata. Its first field has `naming`. */
static char *metadata_with(struct kymo_naming *naming)
{
	struct kymo_ctf_field fields[N_FIELDS] = {
		{ (char *)"state", KYMO_TYPE_S32, naming, 0, NULL, false },
		{ (char *)"c", KYMO_TYPE_S8, kymo_naming_characters(), 0, NULL, false },
		{ (char *)"text", KYMO_TYPE_BYTES, kymo_naming_characters(), KYMO_ARRAY_OF(KYMO_TYPE_U8), NULL, false },
		{ (char *)"states", KYMO_TYPE_BYTES, naming, KYMO_ARRAY_OF(KYMO_TYPE_S32), NULL, false },
		{ (char *)"n", KYMO_TYPE_BYTES, NULL, KYMO_ARRAY_OF(KYMO_TYPE_S16), NULL, false },
	};
	struct kymo_ctf_event event = { .id = 3, .name = (char *)"call", .fields = fields, .n_fields = N_FIELDS };
	struct kymo_ctf_trace trace = synthetic_trace();

	trace.events = &event;
	trace.n_events = 1;
	return metadata_of(&trace);
}

#define CHARACTER(is_signed) \
	"integer { size = 8; align = 8; signed = " is_signed "; byte_order = le; encoding = UTF8; base = 10; }"
#define STATES "enum : s32 { \"GONE\" = -1, \"IDLE\" = 0, \"a \\\"b\\\"\\\\::<int>\\012\" = 7 }"

static void names_and_characters_are_types_of_ctf(void **state)
{
	struct kymo_naming *naming = states();
	kymo_cleanup_free char *text = metadata_with(naming);
	struct kymo_ctf_trace back;
	const struct kymo_ctf_field *fields;

	assert_non_null(strstr(text, "\t\t" STATES
				     " _state;\n\t\t" CHARACTER("true") " _c;\n\t\tu16 _text_length;\n\t\t" CHARACTER(
					     "false") " _text[_text_length];\n\t\tu16 _states_length;\n\t\t" STATES
						      " _states[_states_length];\n\t\tu16 _n_length;\n\t\ts16 "
						      "_n[_n_length];\n"));
	must(kymo_ctf_parse_metadata(text, strlen(text), &back));
	fields = back.events[0].fields;
	assert_int_equal(back.events[0].n_fields, N_FIELDS);
	assert_int_equal(fields[0].type, KYMO_TYPE_S32);
	assert_int_equal(fields[0].naming->n, 3);
	assert_string_equal(kymo_naming_find(fields[0].naming, 7), "a \"b\"\\::<int>\n");
	assert_string_equal(kymo_naming_find(fields[0].naming, -1), "GONE");
	assert_int_equal(fields[1].type, KYMO_TYPE_S8);
	assert_true(fields[1].naming->is_character && fields[2].naming->is_character);
	for (size_t i = 2; i < N_FIELDS; i++)
		assert_int_equal(fields[i].type, KYMO_TYPE_BYTES);
	assert_int_equal(fields[2].array_of, KYMO_ARRAY_OF(KYMO_TYPE_U8));
	assert_int_equal(fields[3].array_of, KYMO_ARRAY_OF(KYMO_TYPE_S32));
	assert_int_equal(fields[3].naming->n, 3);
	assert_int_equal(fields[4].array_of, KYMO_ARRAY_OF(KYMO_TYPE_S16));
	assert_null(fields[4].naming);
	kymo_ctf_trace_deinit(&back);
	kymo_naming_release(naming);
}

static void what_is_no_enumeration_is_refused(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "enum : s32", "enum : f64" },
		{ "enum : s32", "enum : string" },
		{ "enum : s32", "enum s32" },
		{ "enum : s32", "enum : u32" }, /* -1 */
		{ "\"IDLE\"", "\"\"" },
		{ "\"IDLE\"", "IDLE" },
		{ "\"IDLE\" = 0", "\"IDLE\"" },
		{ "\"IDLE\" = 0", "\"IDLE\" = 18446744073709551616" },
		{ "= -1", "= -9223372036854775809" },
		{ "= -1,", "= -1" },
		{ "\"GONE\" = -1, ", "," },
		{ STATES, "enum : s32 { }" },
		{ "encoding = UTF8", "encoding = ASCII" },
		{ "signed = true; byte_order = le; encoding", "signed = maybe; byte_order = le; encoding" },
		{ CHARACTER("true") " _c", CHARACTER("true") },
	};
	struct kymo_naming *naming = states();
	kymo_cleanup_free char *text = metadata_with(naming);

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		kymo_cleanup_free char *changed = replaced(text, cases[i].from, cases[i].to);
		struct kymo_ctf_trace back;
		struct kymo_error *error;

		error = kymo_ctf_parse_metadata(changed, strlen(changed), &back);
		if (!error)
			fail_msg("%s is taken for %s", cases[i].to, cases[i].from);
		kymo_error_destroy(error);
	}
	kymo_naming_release(naming);
}

static void all_names_that_are_written_are_read(void **state)
{
	struct kymo_naming *naming = kymo_naming_create();
	struct kymo_ctf_trace back;
	kymo_cleanup_free char *text = NULL;

	for (int i = 0; i < KYMO_NAMING_NAMES_MAX; i++)
		assert_int_equal(kymo_naming_add(naming, "name", 4, i - 500), 0);
	text = metadata_with(naming);
	must(kymo_ctf_parse_metadata(text, strlen(text), &back));
	assert_int_equal(back.events[0].fields[0].naming->n, KYMO_NAMING_NAMES_MAX);
	kymo_ctf_trace_deinit(&back);
	kymo_naming_release(naming);
}

static struct payload payload;

static uint64_t of(const void *length_and_elements)
{
	return (uintptr_t)length_and_elements;
}

static void records_of_arrays_end_behind_their_elements(void **state)
{
	static struct kymo_ctf_field fields[] = {
		{ (char *)"wide", KYMO_TYPE_BYTES, NULL, KYMO_ARRAY_OF(KYMO_TYPE_S64), NULL, false },
		{ (char *)"end", KYMO_TYPE_U8, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_event event = {
		.id = 3, .name = (char *)"call", .fields = fields, .n_fields = 2, .has_faults = true, .size = 16
	};
	static const struct {
		uint16_t n;
		int64_t values[2];
	} __attribute__((packed)) two = { 2, { -5, INT64_MAX } };
	struct kymo_ctf_trace trace = synthetic_trace();
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_ctf_stream *stream;
	struct kymo_error *error;
	struct scratch scratch;
	const void *elements;
	size_t size;

	trace.events = &event;
	trace.n_events = 1;
	scratch_init(&scratch);
	stream = begin_trace(scratch.fd, &trace, "s", 0);
	payload.size = 0;
	payload_add(&payload, &event, 1, 7, 0, (uint64_t[]){ of(&two), 9 });
	payload_add(&payload, &event, 2, 7, 1, (uint64_t[]){ of("\0\0"), 8 });
	flush_payload(stream, &payload, 1, 2, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_open(scratch.path, &reader));
	assert_true(kymo_ctf_next(reader, &record, &error));
	elements = kymo_ctf_bytes(&record, 0, &size);
	assert_int_equal(size, 16);
	assert_true((int64_t)kymo_ctf_element(elements, KYMO_TYPE_S64, 0) == -5);
	assert_true((int64_t)kymo_ctf_element(elements, KYMO_TYPE_S64, 1) == INT64_MAX);
	assert_true((int64_t)kymo_ctf_element(elements, KYMO_TYPE_S32, 0) == -5);
	assert_int_equal(kymo_ctf_element(elements, KYMO_TYPE_U16, 0), 0xfffb);
	assert_int_equal(record.values[1], 9);
	assert_true(kymo_ctf_next(reader, &record, &error));
	kymo_ctf_bytes(&record, 0, &size);
	assert_int_equal(size, 0);
	assert_int_equal(record.values[1], 8);
	assert_false(kymo_ctf_next(reader, &record, &error));
	kymo_ctf_close(reader);
	scratch_deinit(&scratch);
}

static void types_of_floating_point_numbers_are_read_in_any_number(void **state)
{
	static const enum kymo_type types[][2] = { { KYMO_TYPE_F32, KYMO_TYPE_U8 },
						   { KYMO_TYPE_F64, KYMO_TYPE_U8 },
						   { KYMO_TYPE_F32, KYMO_TYPE_F64 } };

	for (size_t i = 0; i < kymo_countof(types); i++) {
		struct kymo_ctf_field fields[] = { { (char *)"a", types[i][0], NULL, 0, NULL, false },
						   { (char *)"b", types[i][1], NULL, 0, NULL, false } };
		struct kymo_ctf_event event = { .id = 3, .name = (char *)"x", .fields = fields, .n_fields = 2 };
		struct kymo_ctf_trace trace = synthetic_trace(), back;
		kymo_cleanup_free char *text = NULL;
		kymo_cleanup_free char *changed = NULL;
		struct kymo_error *error;
		const char *end;

		trace.events = &event;
		trace.n_events = 1;
		text = metadata_of(&trace);
		must(kymo_ctf_parse_metadata(text, strlen(text), &back));
		assert_int_equal(back.events[0].fields[0].type, types[i][0]);
		assert_int_equal(back.events[0].fields[1].type, types[i][1]);
		kymo_ctf_trace_deinit(&back);
		/* the same type again, after its declaration */
		end = strstr(text, types[i][0] == KYMO_TYPE_F32 ? ":= f32;\n" : ":= f64;\n") + 8;
		assert_true(asprintf(&changed,
				     "%.*stypealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; "
				     "byte_order = le; } := f64;\n%s",
				     (int)(end - text), text, end) > 0);
		error = kymo_ctf_parse_metadata(changed, strlen(changed), &back);
		assert_non_null(error);
		kymo_error_destroy(error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_characters_are_types_of_ctf),
		cmocka_unit_test(what_is_no_enumeration_is_refused),
		cmocka_unit_test(all_names_that_are_written_are_read),
		cmocka_unit_test(types_of_floating_point_numbers_are_read_in_any_number),
		cmocka_unit_test(records_of_arrays_end_behind_their_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
