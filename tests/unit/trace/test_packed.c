/* Packed records and plain ones, from one to the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "trace/packed.h"
#include "trace/trace.h"
#include "wire/packed.h"

#define BEGIN ((UINT64_C(5) << 45) + 12345)

enum { FIXED = 3, WIDE = 31, TEXT = 30, UNKNOWN = 7 };

static struct kymo_ctf_field numbers[] = { { .name = (char *)"a", .type = KYMO_TYPE_U32 },
					   { .name = (char *)"b", .type = KYMO_TYPE_S64 } };
static struct kymo_ctf_field texts[] = { { .name = (char *)"text", .type = KYMO_TYPE_STRING } };
static struct kymo_ctf_event events[] = {
	{ .id = FIXED, .fields = numbers, .n_fields = 2 },
	{ .id = WIDE, .fields = numbers, .n_fields = 1, .has_faults = true },
	{ .id = TEXT, .fields = texts, .n_fields = 1 },
};
static uint32_t by_id[32] = { [FIXED] = 1, [WIDE] = 2, [TEXT] = 3 };
static const struct kymo_trace output = { .trace = { .events = events, .n_events = 3, .is_packed = true },
					  .by_id = by_id,
					  .n_ids = 32 };

struct records {
	uint8_t bytes[8192];
	uint64_t size;
};

static void put(struct records *to, const void *bytes, size_t size)
{
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static void put_plain(struct records *to, uint32_t id, uint64_t stamp, int32_t tid, const void *body, size_t size)
{
	const uint64_t header = id | stamp << KYMO_EVENT_ID_BITS;

	put(to, &header, sizeof(header));
	put(to, &tid, sizeof(tid));
	put(to, body, size);
}

static void put_one(struct records *to, unsigned int i, uint64_t stamp, int32_t tid)
{
	const uint8_t body[16] = { (uint8_t)i, 2, 3 };

	if (i % 3 == 0)
		put_plain(to, FIXED, stamp, tid, body, 12);
	else if (i % 3 == 1)
		put_plain(to, WIDE, stamp, tid, body, 5);
	else
		put_plain(to, TEXT, stamp, tid, "four", 5);
}

/* Sizes of 100 records that come so many ticks after each other, from threads that change each `turns` records. */
static uint64_t pack_and_back(uint64_t ticks, unsigned int turns)
{
	struct records plain = { .size = 0 };
	uint8_t back[3 * 8192 + 16], *packed;
	uint64_t size, end, n;

	for (unsigned int i = 0; i < 100; i++)
		put_one(&plain, i, BEGIN + i * ticks, (int32_t)(i / turns + 1));
	assert_null(kymo_packed_from_plain(&output, plain.bytes, plain.size, BEGIN, &packed, &size, &n));
	assert_int_equal(n, 100);
	assert_int_equal(kymo_packed_count(&output, packed, size, UINT64_MAX, &end), 100);
	assert_int_equal(end, size);
	assert_int_equal(kymo_packed_count(&output, packed, size, 3, &end), 3);
	assert_int_equal(kymo_packed_to_plain(&output, packed, size, BEGIN, NULL, NULL, back), plain.size);
	assert_memory_equal(back, plain.bytes, plain.size);
	free(packed);
	return size;
}

static void records_come_back_as_they_were(void **state)
{
	const uint64_t bodies = 34 * 12 + 33 * 5 + 33 * 5, headers = 67 * 4 + 33 * 8;

	assert_int_equal(pack_and_back(0, 100), bodies + headers + 12);
	assert_int_equal(pack_and_back(1000, 50), bodies + headers + 2 * 12);
	assert_int_equal(pack_and_back(1000, 1), bodies + headers + 100 * 12);
	for (unsigned int bits = 20; bits < 43; bits++) {
		pack_and_back((UINT64_C(1) << bits) - 1, 9);
		pack_and_back(UINT64_C(1) << bits, 9);
		pack_and_back((UINT64_C(1) << bits) + 1, 9);
	}
}

/* The last stamp that a short header takes, and the first that it does not. */
static void a_thread_is_told_again_before_the_stamp_runs_over(void **state)
{
	const uint64_t span = UINT64_C(1) << KYMO_PACKED_COMPACT_TIME_BITS;
	const uint8_t body[12] = { 1 };

	for (unsigned int more = 0; more < 2; more++) {
		struct records plain = { .size = 0 };
		uint8_t *packed;
		uint64_t size, n;

		put_plain(&plain, FIXED, BEGIN, 1, body, 12);
		put_plain(&plain, FIXED, BEGIN + span / 2, 1, body, 12);
		put_plain(&plain, FIXED, BEGIN + span - 1 + more, 1, body, 12);
		assert_null(kymo_packed_from_plain(&output, plain.bytes, plain.size, BEGIN, &packed, &size, &n));
		assert_int_equal(size, (1 + more) * 12 + 3 * (4 + 12));
		free(packed);
	}
}

/* Threads that are interrupted between stamp and room, or a processor whose clock was set back. */
static void stamps_in_the_wrong_order_come_back_as_they_were(void **state)
{
	static const int64_t ticks[] = { 0, 9, 1000, 3, 400, 1 << 28, 7, 1 << 28, (1 << 28) - 1, -1, -100000, 0 };
	const uint8_t body[12] = { 1 };

	for (unsigned int first = 0; first < kymo_countof(ticks); first++) {
		struct records plain = { .size = 0 };
		uint8_t back[3 * 8192 + 16], *packed;
		uint64_t size, n;

		for (unsigned int i = first; i < kymo_countof(ticks); i++)
			put_plain(&plain, i % 2 ? WIDE : FIXED, BEGIN + (uint64_t)ticks[i], 1, body, i % 2 ? 5 : 12);
		assert_null(kymo_packed_from_plain(&output, plain.bytes, plain.size, BEGIN, &packed, &size, &n));
		assert_int_equal(n, kymo_countof(ticks) - first);
		assert_int_equal(kymo_packed_to_plain(&output, packed, size, BEGIN, NULL, NULL, back), plain.size);
		assert_memory_equal(back, plain.bytes, plain.size);
		free(packed);
	}
}

struct taken {
	unsigned int n;
	int32_t tids;
	uint8_t first[100]; /* of each body */
};

static bool take_fixed(void *data, const struct kymo_ctf_event *event, int32_t tid, const uint8_t *body)
{
	struct taken *taken = data;

	if (event != kymo_trace_event(&output, FIXED))
		return false;
	taken->first[taken->n++] = body[0];
	taken->tids += tid;
	return true;
}

static void records_that_are_taken_are_left_out(void **state)
{
	struct records plain = { .size = 0 }, others = { .size = 0 };
	struct taken taken = { .n = 0 };
	uint8_t back[3 * 8192 + 16], *packed;
	uint64_t size, n;

	for (unsigned int i = 0; i < 100; i++) {
		put_one(&plain, i, BEGIN + i, (int32_t)i);
		if (i % 3)
			put_one(&others, i, BEGIN + i, (int32_t)i);
	}
	assert_null(kymo_packed_from_plain(&output, plain.bytes, plain.size, BEGIN, &packed, &size, &n));
	assert_int_equal(kymo_packed_to_plain(&output, packed, size, BEGIN, take_fixed, &taken, back), others.size);
	assert_memory_equal(back, others.bytes, others.size);
	assert_int_equal(taken.n, 34);
	assert_int_equal(taken.tids, 33 * 34 / 2 * 3);
	for (unsigned int i = 0; i < taken.n; i++)
		assert_int_equal(taken.first[i], 3 * i);
	free(packed);
}

/* What comes after the first `good` bytes, with `n_good` records, is none of the trace: it is kept as it is, after
 * a header of the last id. */
static void check_bad(const struct records *packed, uint64_t n_good, uint64_t good)
{
	uint8_t plain[3 * 8192 + 16], *again;
	uint64_t size = kymo_packed_to_plain(&output, packed->bytes, packed->size, BEGIN, NULL, NULL, plain), header, n;
	const uint64_t left = packed->size - good;

	assert_int_equal(size, n_good * (12 + 12) + 12 + left);
	memcpy(&header, plain + size - 12 - left, sizeof(header));
	assert_int_equal(header & KYMO_EVENT_ID_MAX, KYMO_EVENT_ID_MAX);
	assert_memory_equal(plain + size - left, packed->bytes + good, left);
	assert_null(kymo_packed_from_plain(&output, plain, size, BEGIN, &again, &size, &n));
	assert_int_equal(n, n_good);
	assert_int_equal(size, 12 + n_good * (4 + 12) + 8 + left);
	assert_memory_equal(again + size - left, packed->bytes + good, left);
	memcpy(&header, again + size - left - 8, sizeof(header));
	assert_int_equal(header & KYMO_PACKED_KIND_MASK, KYMO_PACKED_WIDE);
	assert_int_equal(header >> KYMO_PACKED_KIND_BITS & KYMO_EVENT_ID_MAX, KYMO_EVENT_ID_MAX);
	free(again);
}

/* The kernel's records of an event that is not described, and half a record. */
static void records_of_an_unknown_event_are_kept(void **state)
{
	const uint8_t body[12] = { 1, 2, 3 };

	for (uint64_t cut = 0; cut < 24; cut++) {
		struct records plain = { .size = 0 };
		uint8_t *packed;
		uint64_t size, n, left;

		put_plain(&plain, FIXED, BEGIN, 1, body, 12);
		put_plain(&plain, cut < 12 ? UNKNOWN : FIXED, BEGIN + 5, 1, body, 12);
		plain.size -= cut % 12;
		left = plain.size - 24;
		assert_null(kymo_packed_from_plain(&output, plain.bytes, plain.size, BEGIN, &packed, &size, &n));
		if (cut == 12) {
			assert_int_equal(n, 2);
		} else {
			assert_int_equal(n, 1);
			assert_int_equal(size, 12 + 4 + 12 + 8 + left);
			assert_memory_equal(packed + size - left, plain.bytes + 24, left);
		}
		free(packed);
	}
}

/* What a target writes that is no record ends in one that readers do not know. */
static void what_is_no_record_is_told(void **state)
{
	const uint32_t header = FIXED, unknown = UNKNOWN;
	const uint64_t thread = BEGIN << KYMO_PACKED_KIND_BITS, wide_of_0 = KYMO_PACKED_WIDE;
	const uint8_t body[12] = { 1 };
	const int32_t tid = 5;
	struct records good = { .size = 0 }, bad = { .size = 0 };

	put(&bad, &header, sizeof(header));
	put(&bad, body, sizeof(body));
	check_bad(&bad, 0, 0); /* no thread */
	put(&good, &thread, sizeof(thread));
	put(&good, &tid, sizeof(tid));
	put(&good, &header, sizeof(header));
	put(&good, body, sizeof(body));
	bad = good;
	put(&bad, &unknown, sizeof(unknown));
	check_bad(&bad, 1, good.size);
	bad = good;
	put(&bad, &wide_of_0, sizeof(wide_of_0));
	check_bad(&bad, 1, good.size);
	for (uint64_t size = good.size + 1; size < good.size + 16; size++) {
		bad = good;
		put(&bad, good.bytes + 12, 16);
		bad.size = size;
		check_bad(&bad, 1, good.size);
	}
}

static void any_bytes_are_read_within_their_bounds(void **state)
{
	uint64_t random = 88172645463325252u;

	for (unsigned int i = 0; i < 20000; i++) {
		uint8_t *bytes = malloc(64), *plain = malloc(kymo_packed_plain_max(64)), *again;
		const uint64_t size = i % 65;
		uint64_t n, packed_size, end, n_records;

		for (unsigned int k = 0; k < 64; k++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			bytes[k] = (uint8_t)(random >> 32 & (k % 5 ? 0xff : 0x1f));
		}
		n = kymo_packed_to_plain(&output, bytes, size, BEGIN, NULL, NULL, plain);
		assert_true(n <= kymo_packed_plain_max(size));
		assert_null(kymo_packed_from_plain(&output, plain, n, BEGIN, &again, &packed_size, &n_records));
		assert_true(packed_size <= 2 * n + KYMO_PACKED_HEADERS_MAX);
		kymo_packed_count(&output, bytes, size, UINT64_MAX, &end);
		assert_true(end <= size);
		free(again);
		free(plain);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_back_as_they_were),
		cmocka_unit_test(a_thread_is_told_again_before_the_stamp_runs_over),
		cmocka_unit_test(stamps_in_the_wrong_order_come_back_as_they_were),
		cmocka_unit_test(records_that_are_taken_are_left_out),
		cmocka_unit_test(records_of_an_unknown_event_are_kept),
		cmocka_unit_test(what_is_no_record_is_told),
		cmocka_unit_test(any_bytes_are_read_within_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
