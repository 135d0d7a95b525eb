/* Stamps of packed records, in any order, by the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

#define BEGIN ((UINT64_C(5) << 45) + 12345)
#define COMPACT (UINT64_C(1) << KYMO_PACKED_COMPACT_TIME_BITS)
#define WIDE (UINT64_C(1) << KYMO_PACKED_WIDE_TIME_BITS)

enum { THREAD = KYMO_PACKED_THREAD, SHORT = 3, LONG = 40 };

/* A record of an event with that id, or of a thread. */
struct step {
	uint32_t id;
	uint64_t stamp;
};

static struct kymo_ctf_event events[] = { { .id = SHORT, .name = (char *)"short", .size = 12 },
					  { .id = LONG, .name = (char *)"long", .size = 12 } };

static void put(struct payload *payload, const struct step *step)
{
	if (step->id == THREAD) {
		payload_put(payload, step->stamp << KYMO_PACKED_KIND_BITS, 8);
		payload_put(payload, 4242, 4);
	} else if (step->id == SHORT) {
		payload_put(payload, SHORT | step->stamp << KYMO_PACKED_KIND_BITS, 4);
	} else {
		payload_put(payload,
			    KYMO_PACKED_WIDE | LONG << KYMO_PACKED_KIND_BITS |
				    step->stamp << (64 - KYMO_PACKED_WIDE_TIME_BITS),
			    8);
	}
}

/* One packet, from BEGIN on, of these records: the reader gives the stamps that were written. */
static void check_stamps(const struct step *steps, size_t n)
{
	static struct payload payload;
	struct kymo_ctf_trace trace = synthetic_trace();
	struct kymo_ctf_stream *stream;
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_error *error;
	struct scratch scratch;
	size_t n_warnings;

	trace.events = events;
	trace.n_events = kymo_countof(events);
	trace.is_packed = true;
	scratch_init(&scratch);
	stream = begin_trace(scratch.fd, &trace, "s", 0);
	for (size_t i = 0; i < n; i++)
		put(&payload, &steps[i]);
	flush_payload(stream, &payload, BEGIN, BEGIN + WIDE, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_open(scratch.path, &reader));
	for (size_t i = 0; i < n; i++) {
		if (steps[i].id == THREAD)
			continue;
		assert_true(kymo_ctf_next_unordered(reader, &record, &error));
		assert_int_equal(record.event->id, steps[i].id);
		assert_int_equal(record.tsc, steps[i].stamp);
		assert_int_equal(record.tid, 4242);
	}
	assert_false(kymo_ctf_next_unordered(reader, &record, &error));
	must(error);
	kymo_ctf_reader_warnings(reader, &n_warnings);
	assert_int_equal(n_warnings, 0);
	kymo_ctf_close(reader);
	scratch_deinit(&scratch);
}

static void a_stamp_may_be_before_that_of_the_last_record(void **state)
{
	const struct step steps[] = {
		{ THREAD, BEGIN },          { SHORT, BEGIN },
		{ SHORT, BEGIN + 1000 },    { SHORT, BEGIN + 400 },
		{ LONG, BEGIN + 2000 },     { LONG, BEGIN + 1999 },
		{ LONG, BEGIN + WIDE - 1 }, { SHORT, BEGIN + COMPACT - 1 },
		{ SHORT, BEGIN },           { LONG, BEGIN + WIDE / 2 },
		{ SHORT, BEGIN + 5 },
	};

	check_stamps(steps, kymo_countof(steps));
}

static void a_stamp_may_be_before_that_of_the_last_thread(void **state)
{
	const struct step steps[] = {
		{ THREAD, BEGIN + 5000 },        { SHORT, BEGIN + 5000 },        { THREAD, BEGIN + 4999 },
		{ SHORT, BEGIN + 4999 },         { LONG, BEGIN + 9000 },         { THREAD, BEGIN + 100 },
		{ LONG, BEGIN + 100 },           { THREAD, BEGIN + 2 * WIDE },   { SHORT, BEGIN + 2 * WIDE + 7 },
		{ THREAD, BEGIN + 4 * COMPACT }, { SHORT, BEGIN + 4 * COMPACT },
	};

	check_stamps(steps, kymo_countof(steps));
}

static void the_first_stamp_may_be_before_the_packet(void **state)
{
	static const uint64_t before[] = { 1, COMPACT, WIDE, BEGIN - 1 };

	for (size_t i = 0; i < kymo_countof(before); i++) {
		const struct step steps[] = { { THREAD, BEGIN - before[i] },
					      { SHORT, BEGIN - before[i] },
					      { LONG, BEGIN - before[i] + 1000 },
					      { THREAD, BEGIN + 1 },
					      { SHORT, BEGIN + 1 } };

		check_stamps(steps, kymo_countof(steps));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stamp_may_be_before_that_of_the_last_record),
		cmocka_unit_test(a_stamp_may_be_before_that_of_the_last_thread),
		cmocka_unit_test(the_first_stamp_may_be_before_the_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
