#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

#define MAX_RECORDS 64

/* What a trace gave. */
struct reading {
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record records[MAX_RECORDS];
	size_t n, n_losses, n_warnings;
	const struct kymo_ctf_loss *losses;
	const char *const *warnings;
};

typedef bool next_fn(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error);

static void read_all(struct reading *r, const char *dir, next_fn *next)
{
	struct kymo_error *error;

	r->n = 0;
	must(kymo_ctf_open(dir, &r->reader));
	while (next(r->reader, &r->records[r->n], &error))
		assert_true(++r->n < MAX_RECORDS);
	must(error);
	r->losses = kymo_ctf_reader_losses(r->reader, &r->n_losses);
	r->warnings = kymo_ctf_reader_warnings(r->reader, &r->n_warnings);
}

/* What a test writes into the only stream of its trace. */
static struct payload payload;

static struct kymo_ctf_stream *begin(struct scratch *scratch, const struct kymo_ctf_trace *trace, uint32_t cpu)
{
	scratch_init(scratch);
	payload.size = 0;
	return begin_trace(scratch->fd, trace, "s", cpu);
}

static void end_and_read_all(struct kymo_ctf_stream *stream, struct reading *r, const struct scratch *scratch,
			     next_fn *next)
{
	kymo_ctf_stream_destroy(stream);
	read_all(r, scratch->path, next);
}

/* The payload is its only packet. `check` sees each record and its number; the number of all is returned. */
static uint64_t end_and_check_each(struct kymo_ctf_stream *stream, struct scratch *scratch,
				   void (*check)(const struct kymo_ctf_record *record, uint64_t n))
{
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_error *error;
	uint64_t n = 0;

	flush_payload(stream, &payload, 0, UINT32_MAX, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_open(scratch->path, &reader));
	for (; kymo_ctf_next(reader, &record, &error); n++)
		check(&record, n);
	must(error);
	kymo_ctf_close(reader);
	scratch_deinit(scratch);
	return n;
}

static void close_and_deinit(const struct reading *r, struct scratch *scratch)
{
	kymo_ctf_close(r->reader);
	scratch_deinit(scratch);
}

static void assert_open_error(const char *dir, enum kymo_error_code code, const char *part)
{
	struct kymo_ctf_reader *reader;
	struct kymo_error *error = kymo_ctf_open(dir, &reader);

	assert_non_null(error);
	assert_int_equal(error->code, code);
	assert_non_null(strstr(error->message, part));
	kymo_error_destroy(error);
}

static void records_of_all_streams_come_in_the_order_of_time(void **state)
{
	static const uint64_t times[] = {
		1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 7000, 8000, 8500, 1000002500
	};
	struct scratch scratch;
	struct reading r;

	scratch_init(&scratch);
	write_synthetic(scratch.fd, 0);
	write_file(scratch.fd, ".hidden", "no stream", 9);
	write_file(scratch.fd, "empty", "", 0);
	assert_int_equal(mkfifoat(scratch.fd, "fifo", 0600), 0);
	read_all(&r, scratch.path, kymo_ctf_next);
	assert_int_equal(r.n, kymo_countof(times));
	for (size_t i = 0; i < r.n; i++)
		assert_int_equal(r.records[i].tsc, times[i]);
	assert_int_equal(r.n_losses, 0);
	assert_int_equal(r.n_warnings, 0);

	assert_string_equal(r.records[1].event->name, "libc:read");
	assert_int_equal(r.records[1].tid, 4243);
	assert_int_equal(r.records[1].cpu, 1);
	assert_int_equal(r.records[1].faults, 0);
	assert_true(r.records[1].values[0] == (uint64_t)-1);
	assert_int_equal(r.records[1].values[1], 0x7fff0000);
	assert_int_equal(r.records[1].values[2], 200);
	assert_int_equal(r.records[11].faults, 2);
	close_and_deinit(&r, &scratch);
}

static void the_unordered_way_gives_the_same_records(void **state)
{
	struct scratch scratch;
	struct reading r;
	uint64_t sum = 0;

	scratch_init(&scratch);
	write_synthetic(scratch.fd, 5);
	read_all(&r, scratch.path, kymo_ctf_next_unordered);
	for (size_t i = 0; i < r.n; i++)
		sum += r.records[i].tsc;
	assert_int_equal(r.n, 12);
	assert_int_equal(sum, 1000051000);
	assert_int_equal(r.n_losses, 1);
	close_and_deinit(&r, &scratch);
}

static void discarded_events_and_missing_packets_are_losses(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 3);
	struct reading r;

	flush_payload(stream, &payload, 1000, 2000, 7, 4);
	flush_payload(stream, &payload, 5000, 6000, 7, 7);
	flush_payload(stream, &payload, 7000, 8000, 9, 8);
	end_and_read_all(stream, &r, &scratch, kymo_ctf_next);
	assert_int_equal(r.n_losses, 4);
	assert_memory_equal(&r.losses[0], (&(struct kymo_ctf_loss){ 1000, 1000, 0, 4, 3 }), sizeof(r.losses[0]) - 4);
	assert_memory_equal(&r.losses[1], (&(struct kymo_ctf_loss){ 1000, 2000, 7, 0, 3 }), sizeof(r.losses[0]) - 4);
	assert_memory_equal(&r.losses[2], (&(struct kymo_ctf_loss){ 2000, 5000, 0, 2, 3 }), sizeof(r.losses[0]) - 4);
	assert_memory_equal(&r.losses[3], (&(struct kymo_ctf_loss){ 6000, 8000, 2, 0, 3 }), sizeof(r.losses[0]) - 4);
	close_and_deinit(&r, &scratch);
}

static void stamps_of_44_bits_are_extended_forward_and_back(void **state)
{
	const uint64_t span = 1ull << KYMO_EVENT_TIME_BITS;
	const uint64_t times[] = {
		7 * span - 10, 7 * span + 5, 7 * span + 3, 7 * span - 2, 8 * span - 1, 8 * span + 1
	};
	struct kymo_ctf_trace trace = synthetic_trace();
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 0);
	struct reading r;

	for (size_t i = 0; i < kymo_countof(times); i++) {
		payload_add(&payload, &trace.events[2], times[i], 1, 0, NULL);
		/* The steps back are within one packet, the long way forward is another's. */
		if (i == 3)
			flush_payload(stream, &payload, 7 * span - 20, 7 * span + 10, 0, 0);
	}
	flush_payload(stream, &payload, 8 * span - 1, 8 * span + 1, 0, 1);
	end_and_read_all(stream, &r, &scratch, kymo_ctf_next_unordered);
	assert_int_equal(r.n, kymo_countof(times));
	for (size_t i = 0; i < r.n; i++)
		assert_true(r.records[i].tsc == times[i]);
	close_and_deinit(&r, &scratch);
}

static void a_stream_cut_anywhere_gives_its_whole_records(void **state)
{
	/* Three records of 26 bytes: two in the first packet, one in the second. */
	const size_t header = sizeof(struct kymo_ctf_packet), first = header + 52, end = first + header + 26;
	struct scratch scratch;
	struct reading r;

	scratch_init(&scratch);
	write_synthetic(scratch.fd, 0);
	unlinkat(scratch.fd, "stream_0", 0);
	for (size_t size = end + 1; size-- > 0;) {
		kymo_cleanup_close int fd = openat(scratch.fd, "stream_1", O_WRONLY | O_CLOEXEC);
		size_t records = size >= end ? 3 : size >= first ? 2 : size < header ? 0 : (size - header) / 26;

		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		read_all(&r, scratch.path, kymo_ctf_next);
		assert_int_equal(r.n, records);
		assert_int_equal(r.n_warnings, size != end && size != first && size != 0);
		if (size == end - 7)
			assert_string_equal(r.warnings[0],
					    "stream_1: the last packet is cut off; 19 bytes were left out");
		if (size == first + 3)
			assert_string_equal(r.warnings[0], "stream_1: the last packet is cut off in its header; "
							   "3 bytes were left out");
		kymo_ctf_close(r.reader);
	}
	scratch_deinit(&scratch);
}

static void strings_and_doubles_are_read_as_they_were(void **state)
{
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record r;
	struct kymo_error *error;
	struct scratch scratch;

	scratch_init(&scratch);
	write_marked(scratch.fd);
	must(kymo_ctf_open(scratch.path, &reader));
	assert_true(kymo_ctf_next(reader, &r, &error));
	assert_int_equal(r.values[0], 3);
	assert_string_equal(kymo_ctf_string(&r, 1), "/etc/passwd");
	assert_true(kymo_ctf_double(&r, 2) == 0.25);
	assert_string_equal(kymo_ctf_string(&r, 3), "");
	assert_int_equal(r.values[4], 0x10);
	assert_true(kymo_ctf_next(reader, &r, &error));
	assert_string_equal(kymo_ctf_string(&r, 1), HOSTILE_TEXT);
	assert_true(kymo_ctf_double(&r, 2) == -1e300);
	assert_string_equal(kymo_ctf_string(&r, 3), "\xc3\xa9");
	assert_int_equal(r.values[4], 0xffffffff);
	assert_true(kymo_ctf_next(reader, &r, &error));
	assert_true(r.values[0] == (uint64_t)-1);
	assert_true(kymo_ctf_next(reader, &r, &error));
	assert_string_equal(kymo_ctf_string(&r, 3), "plain");
	assert_true(kymo_ctf_next(reader, &r, &error));
	assert_true(kymo_ctf_double(&r, 2) != kymo_ctf_double(&r, 2));
	assert_int_equal(r.values[4], 0x11);
	assert_false(kymo_ctf_next(reader, &r, &error));
	must(error);
	kymo_ctf_close(reader);
	scratch_deinit(&scratch);
}

static void a_record_ends_where_its_last_string_and_number_do(void **state)
{
	struct kymo_ctf_trace trace = marked_trace();
	size_t whole;

	payload.size = 0;
	payload_add(&payload, &trace.events[OPEN], 1, 1, 0,
		    (uint64_t[]){ 3, text_value("/tmp"), real_value(1), text_value("x"), 9 });
	whole = payload.size;
	assert_int_equal(whole, 12 + 4 + 5 + 8 + 2 + 4);
	assert_int_equal(trace.events[OPEN].size, 12 + 4 + 1 + 8 + 1 + 4);
	assert_false(trace.events[OPEN].is_fixed);
	payload_put(&payload, UINT64_MAX, 8);
	for (size_t left = 0; left <= payload.size; left++) {
		/* In memory of its own, so that reading over the end shows. */
		kymo_cleanup_free uint8_t *copy = malloc(left + 1);

		memmove(copy + 1, payload.bytes, left);
		assert_int_equal(kymo_ctf_record_size(&trace.events[OPEN], copy + 1, left), left < whole ? 0 : whole);
	}
}

static void a_cut_stream_with_strings_gives_its_whole_records(void **state)
{
	struct kymo_ctf_trace trace = marked_trace();
	struct scratch scratch;
	struct stat status;
	struct reading r;
	size_t before = SIZE_MAX;

	scratch_init(&scratch);
	write_marked(scratch.fd);
	assert_int_equal(fstatat(scratch.fd, "stream_0", &status, 0), 0);
	for (off_t size = status.st_size; size-- > (off_t)sizeof(struct kymo_ctf_packet);) {
		kymo_cleanup_close int fd = openat(scratch.fd, "stream_0", O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, size), 0);
		read_all(&r, scratch.path, kymo_ctf_next);
		assert_true(r.n < 5 && r.n <= before && (before == SIZE_MAX || before - r.n <= 1));
		assert_int_equal(r.n_warnings, 1);
		assert_non_null(strstr(r.warnings[0], "stream_0: the last packet is cut off; "));
		before = r.n;
		kymo_ctf_close(r.reader);
	}
	assert_int_equal(before, 0);
	assert_int_equal(trace.n_events, N_MARKERS);
	scratch_deinit(&scratch);
}

static void a_string_ends_in_its_packet_or_is_damage(void **state)
{
	struct kymo_ctf_trace trace = marked_trace();
	const struct kymo_ctf_event *event = &trace.events[OPEN];
	const uint64_t values[] = { 3, text_value("/tmp"), real_value(1), text_value("x"), 9 };
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 0);
	struct reading r;

	payload_add(&payload, event, 1, 1, 0, values);
	payload_add(&payload, event, 2, 1, 0, values);
	/* The second one's last string has no end, and the next packet's header, which holds NULs, must not be it. */
	memset(payload.bytes + payload.size - 6, 'x', 6);
	flush_payload(stream, &payload, 1, 2, 0, 0);
	payload_add(&payload, event, 3, 1, 0, values);
	flush_payload(stream, &payload, 3, 3, 0, 1);
	end_and_read_all(stream, &r, &scratch, kymo_ctf_next);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.records[1].tsc, 3);
	assert_int_equal(r.n_warnings, 1);
	assert_string_equal(r.warnings[0],
			    "s: the record at byte 111 runs over the end of its packet; 35 bytes were left out");
	close_and_deinit(&r, &scratch);
}

static void a_record_of_more_than_16_kilobytes_costs_the_rest_of_its_packet(void **state)
{
	struct kymo_ctf_trace trace = marked_trace();
	const struct kymo_ctf_event *event = &trace.events[OPEN];
	static char text[KYMO_CTF_MAX_RECORD + 1];
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 0);
	struct reading r;

	memset(text, 'x', sizeof(text) - 1);
	/* As large as it may be, and one byte more. */
	text[KYMO_CTF_MAX_RECORD - event->size] = '\0';
	payload_add(&payload, event, 1, 1, 0, (uint64_t[]){ 3, text_value(text), 0, text_value(""), 9 });
	assert_int_equal(payload.size, KYMO_CTF_MAX_RECORD);
	text[KYMO_CTF_MAX_RECORD - event->size] = 'x';
	text[KYMO_CTF_MAX_RECORD - event->size + 1] = '\0';
	payload_add(&payload, event, 2, 1, 0, (uint64_t[]){ 3, text_value(text), 0, text_value(""), 9 });
	for (int i = 0; i < 30; i++)
		payload_add(&payload, event, 3, 1, 0, (uint64_t[]){ 3, text_value(text), 0, text_value(""), 9 });
	flush_payload(stream, &payload, 1, 3, 0, 0);
	payload_add(&payload, event, 4, 1, 0, (uint64_t[]){ 3, text_value(""), 0, text_value(""), 9 });
	flush_payload(stream, &payload, 4, 4, 0, 1);
	end_and_read_all(stream, &r, &scratch, kymo_ctf_next_unordered);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.records[1].tsc, 4);
	assert_int_equal(r.n_warnings, 1);
	assert_string_equal(r.warnings[0], "s: the record at byte 16460 is larger than 16384 bytes; "
					   "507935 bytes of its packet were left out");
	close_and_deinit(&r, &scratch);
}

/* The string of record `n`. */
static const char *numbered_text(uint64_t n)
{
	static char text[256];

	memset(text, 'a' + (int)(n % 26), n % 256);
	text[n % 256] = '\0';
	return text;
}

static void check_numbered_text(const struct kymo_ctf_record *record, uint64_t n)
{
	const char *text = numbered_text(n);

	assert_int_equal(record->values[0], n);
	assert_string_equal(kymo_ctf_string(record, 1), text);
	assert_string_equal(kymo_ctf_string(record, 3), text);
	assert_int_equal(record->values[4], n);
}

static void strings_over_the_edge_of_the_window_are_read_whole(void **state)
{
	struct kymo_ctf_trace trace = marked_trace();
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 0);
	uint64_t written = 0;

	for (; payload.size + 600 <= sizeof(payload.bytes); written++) {
		uint64_t text = text_value(numbered_text(written));

		payload_add(&payload, &trace.events[OPEN], written, 1, 0,
			    (uint64_t[]){ written, text, 0, text, written });
	}
	assert_int_equal(end_and_check_each(stream, &scratch, check_numbered_text), written);
}

/* Overwrite bytes of stream_1. */
static void damage(const struct scratch *scratch, off_t offset, const void *bytes, size_t size)
{
	kymo_cleanup_close int fd = openat(scratch->fd, "stream_1", O_WRONLY | O_CLOEXEC);

	assert_int_equal(kymo_pwrite_all(fd, bytes, size, offset), 0);
}

static void what_is_written_behind_the_opening_is_not_read(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 0);
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_error *error;
	uint64_t time = 1000;

	payload_add(&payload, &trace.events[2], time, 1, 0, NULL);
	flush_payload(stream, &payload, time, time, 0, 0);
	must(kymo_ctf_open(scratch.path, &reader));
	for (uint64_t n = 1; n < 3; n++) {
		payload_add(&payload, &trace.events[2], ++time, 1, 0, NULL);
		flush_payload(stream, &payload, time, time, 0, n);
		assert_int_equal(kymo_ctf_next(reader, &record, &error), n == 1);
		must(error);
	}
	kymo_ctf_close(reader);
	must(kymo_ctf_open(scratch.path, &reader));
	for (time = 1000; kymo_ctf_next(reader, &record, &error); time++)
		assert_int_equal(record.tsc, time);
	assert_int_equal(time, 1003);
	kymo_ctf_close(reader);
	kymo_ctf_stream_destroy(stream);
	scratch_deinit(&scratch);
}

static void a_record_of_an_unknown_event_costs_the_rest_of_its_packet(void **state)
{
	struct scratch scratch;
	struct reading r;

	scratch_init(&scratch);
	write_synthetic(scratch.fd, 0);
	/* The second record of the first packet. */
	damage(&scratch, sizeof(struct kymo_ctf_packet) + 26, "\x08", 1);
	read_all(&r, scratch.path, kymo_ctf_next);
	assert_int_equal(r.n, 11);
	assert_int_equal(r.n_warnings, 1);
	assert_string_equal(r.warnings[0], "stream_1: the record at byte 102 has the unknown id 8; "
					   "26 bytes of its packet were left out");
	close_and_deinit(&r, &scratch);
}

static void a_damaged_packet_header_costs_the_rest_of_its_stream(void **state)
{
	static const struct {
		size_t field;
		uint64_t value;
		size_t size;
		const char *what;
	} cases[] = {
		{ offsetof(struct kymo_ctf_packet, magic), 1, 4, "is not a CTF packet" },
		{ offsetof(struct kymo_ctf_packet, uuid), 77, 1, "belongs to another trace" },
		{ offsetof(struct kymo_ctf_packet, stream_id), 1, 4, "is of an unknown kind of stream" },
		{ offsetof(struct kymo_ctf_packet, content_size), 8, 8, "has an impossible size" },
		{ offsetof(struct kymo_ctf_packet, packet_size), UINT64_MAX - 7, 8, NULL },
		{ offsetof(struct kymo_ctf_packet, content_size), UINT64_MAX - 7, 8, "has an impossible size" },
		{ offsetof(struct kymo_ctf_packet, timestamp_end), 1, 8, "ends before it begins" },
	};
	const size_t second = sizeof(struct kymo_ctf_packet) + 52;
	struct reading r;

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		struct scratch scratch;

		scratch_init(&scratch);
		write_synthetic(scratch.fd, 0);
		damage(&scratch, (off_t)(second + cases[i].field), &cases[i].value, cases[i].size);
		read_all(&r, scratch.path, kymo_ctf_next);
		/* A packet that claims to be longer than the file is a cut one with all of its content. */
		assert_int_equal(r.n, cases[i].what ? 11 : 12);
		if (cases[i].what) {
			assert_int_equal(r.n_warnings, 1);
			assert_non_null(strstr(r.warnings[0], cases[i].what));
		}
		close_and_deinit(&r, &scratch);
	}
}

static void check_number(const struct kymo_ctf_record *record, uint64_t n)
{
	assert_int_equal(record->tsc, n);
	assert_int_equal(record->values[0], n);
}

static void a_packet_larger_than_the_window_is_read_whole(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	struct scratch scratch;
	struct kymo_ctf_stream *stream = begin(&scratch, &trace, 0);

	for (uint64_t i = 0; payload.size + 20 <= sizeof(payload.bytes); i++)
		payload_add(&payload, &trace.events[0], i, 1, 0, &i);
	assert_int_equal(end_and_check_each(stream, &scratch, check_number), sizeof(payload.bytes) / 20);
}

static void what_is_no_trace_is_said_to_be_none(void **state)
{
	struct scratch scratch;
	char path[8192];

	scratch_init(&scratch);
	snprintf(path, sizeof(path), "%s/none", scratch.path);
	assert_open_error(path, KYMO_ERROR_NOT_FOUND, "No such file or directory");
	assert_open_error(scratch.path, KYMO_ERROR_NOT_FOUND, "is not a trace: there is no file 'metadata' in it");
	write_file(scratch.fd, "metadata", "text", 4);
	assert_open_error(scratch.path, KYMO_ERROR_BAD_DATA, "metadata:1: 'typealias' was expected, not 'text'");
	snprintf(path, sizeof(path), "%s/metadata", scratch.path);
	assert_open_error(path, KYMO_ERROR_BAD_DATA, "is not a directory");
	write_synthetic(scratch.fd, 0);
	damage(&scratch, offsetof(struct kymo_ctf_packet, uuid), "x", 1);
	assert_open_error(scratch.path, KYMO_ERROR_BAD_DATA, "stream_1: the first packet belongs to another trace");
	scratch_deinit(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_all_streams_come_in_the_order_of_time),
		cmocka_unit_test(the_unordered_way_gives_the_same_records),
		cmocka_unit_test(discarded_events_and_missing_packets_are_losses),
		cmocka_unit_test(stamps_of_44_bits_are_extended_forward_and_back),
		cmocka_unit_test(a_stream_cut_anywhere_gives_its_whole_records),
		cmocka_unit_test(strings_and_doubles_are_read_as_they_were),
		cmocka_unit_test(a_record_ends_where_its_last_string_and_number_do),
		cmocka_unit_test(a_cut_stream_with_strings_gives_its_whole_records),
		cmocka_unit_test(a_string_ends_in_its_packet_or_is_damage),
		cmocka_unit_test(a_record_of_more_than_16_kilobytes_costs_the_rest_of_its_packet),
		cmocka_unit_test(strings_over_the_edge_of_the_window_are_read_whole),
		cmocka_unit_test(what_is_written_behind_the_opening_is_not_read),
		cmocka_unit_test(a_record_of_an_unknown_event_costs_the_rest_of_its_packet),
		cmocka_unit_test(a_damaged_packet_header_costs_the_rest_of_its_stream),
		cmocka_unit_test(a_packet_larger_than_the_window_is_read_whole),
		cmocka_unit_test(what_is_no_trace_is_said_to_be_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
