/* Packets made of samples: order, losses, the flight recorder. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "trace/kernel_stream.h"
#include "trace/trace.h"

#define RECORD 20 /* bytes: one argument of 8 */

struct test {
	char dir[64];
	struct kymo_trace output;
	struct kymo_kernel_stream *stream;
};

static void check_none(struct kymo_error *error)
{
	if (error)
		fail_msg("%s", error->message);
}

static void begin(struct test *test, uint64_t keep)
{
	const char *tmp = getenv("TMPDIR");

	memset(test, 0, sizeof(*test));
	snprintf(test->dir, sizeof(test->dir), "%.40s/kymo.XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	assert_non_null(mkdtemp(test->dir));
	test->output.dirfd = open(test->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(test->output.dirfd >= 0);
	check_none(kymo_kernel_stream_create("kernel", 3, 1, keep, NULL, &test->stream));
}

static void add(struct test *test, uint64_t tsc, uint64_t value, uint64_t lost)
{
	uint8_t record[RECORD] = { 9 };

	memcpy(record + KYMO_EVENT_ARGS_OFFSET, &value, sizeof(value));
	check_none(kymo_kernel_stream_add(test->stream, &test->output, record, sizeof(record), tsc, lost));
}

/* The file's bytes after the end of the recording; the caller frees. */
static char *finish(struct test *test, uint64_t tsc, uint64_t lost, size_t *size_ret)
{
	char *bytes = NULL;
	int err;

	check_none(kymo_kernel_stream_finish(test->stream, &test->output, tsc, lost));
	kymo_kernel_stream_destroy(test->stream);
	err = kymo_read_file(test->output.dirfd, "kernel_3", 1 << 24, &bytes, size_ret);
	if (err) {
		*size_ret = 0;
		bytes = calloc(1, 1);
	}
	unlinkat(test->output.dirfd, "kernel_3", 0);
	close(test->output.dirfd);
	rmdir(test->dir);
	return bytes;
}

static struct kymo_ctf_packet packet_at(const char *bytes, size_t size, size_t *at)
{
	struct kymo_ctf_packet packet;

	assert_true(*at + sizeof(packet) <= size);
	memcpy(&packet, bytes + *at, sizeof(packet));
	assert_true(packet.content_size == packet.packet_size && *at + packet.packet_size / 8 <= size);
	assert_true(packet.timestamp_begin <= packet.timestamp_end);
	*at += packet.packet_size / 8;
	return packet;
}

static void check_packet(const struct kymo_ctf_packet *packet, uint64_t begin_tsc, uint64_t end_tsc, size_t n,
			 uint64_t lost)
{
	assert_int_equal(packet->timestamp_begin, begin_tsc);
	assert_int_equal(packet->timestamp_end, end_tsc);
	assert_int_equal((packet->content_size / 8 - sizeof(*packet)) / RECORD, n);
	assert_int_equal(packet->events_discarded, lost);
}

static void records_out_of_order_are_put_in_order(void **state)
{
	static const uint64_t stamps[] = { 100, 200, 150, 120, 300 }, order[] = { 100, 120, 150, 200, 300 };
	struct kymo_ctf_packet packet;
	struct test test;
	size_t size, at = 0, first;
	char *bytes;

	begin(&test, 0);
	for (size_t i = 0; i < 5; i++)
		add(&test, stamps[i], stamps[i], 0);
	bytes = finish(&test, 400, 0, &size);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 100, 100, 0, 0); /* the empty one that a stream begins with */
	first = at + sizeof(packet);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 100, 300, 5, 0);
	assert_int_equal(at, size);
	for (size_t i = 0; i < 5; i++) {
		uint64_t header, value;

		memcpy(&header, bytes + first + i * RECORD, 8);
		memcpy(&value, bytes + first + i * RECORD + KYMO_EVENT_ARGS_OFFSET, 8);
		assert_int_equal(header, order[i] << KYMO_EVENT_ID_BITS | 9);
		assert_int_equal(value, order[i]);
	}
	free(bytes);
}

static void stamps_never_fall_below_a_packet_that_is_written(void **state)
{
	struct kymo_ctf_packet packet;
	struct test test;
	size_t size, at = 0;
	char *bytes;

	begin(&test, 0);
	add(&test, 1000, 1, 0);
	check_none(kymo_kernel_stream_flush(test.stream, &test.output));
	add(&test, 900, 2, 0);
	bytes = finish(&test, 950, 0, &size);
	packet_at(bytes, size, &at);
	packet_at(bytes, size, &at);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 1000, 1000, 1, 0);
	assert_int_equal(at, size);
	free(bytes);
}

static void a_loss_stands_between_the_records_around_it(void **state)
{
	struct kymo_ctf_packet packet;
	struct test test;
	size_t size, at = 0;
	char *bytes;

	begin(&test, 0);
	for (uint64_t i = 0; i < 1000; i++)
		add(&test, 1000 + i, i, 0);
	add(&test, 5000, 1000, 7);
	bytes = finish(&test, 9000, 12, &size);
	packet_at(bytes, size, &at);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 1000, 1999, 1000, 0);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 1999, 5000, 0, 7);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 5000, 5000, 1, 7);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 5000, 9000, 0, 12);
	assert_int_equal(at, size);
	assert_int_equal(test.output.events, 1001);
	assert_int_equal(test.output.bytes, 1001 * RECORD);
	free(bytes);
}

static void losses_before_the_first_record_are_told(void **state)
{
	struct kymo_ctf_packet packet;
	struct test test;
	size_t size, at = 0;
	char *bytes;

	begin(&test, 0);
	add(&test, 1000, 1, 3);
	bytes = finish(&test, 2000, 3, &size);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 1000, 1000, 0, 0);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 1000, 1000, 0, 3);
	packet = packet_at(bytes, size, &at);
	check_packet(&packet, 1000, 1000, 1, 3);
	assert_int_equal(at, size);
	free(bytes);
}

static void the_flight_recorder_keeps_the_newest_packets(void **state)
{
	struct kymo_ctf_packet packet;
	uint64_t sequence = 0, records = 0;
	struct test test;
	size_t size, at = 0;
	char *bytes;

	begin(&test, 65536);
	for (uint64_t i = 0; i < 100000; i++)
		add(&test, 1000 + i, i, 0);
	bytes = finish(&test, 200000, 0, &size);
	packet = packet_at(bytes, size, &at);
	assert_int_equal(packet.packet_seq_num, 0);
	while (at < size) {
		packet = packet_at(bytes, size, &at);
		if (sequence)
			assert_int_equal(packet.packet_seq_num, sequence + 1);
		else
			assert_true(packet.packet_seq_num > 100);
		sequence = packet.packet_seq_num;
		records += (packet.content_size / 8 - sizeof(packet)) / RECORD;
	}
	assert_int_equal(packet.timestamp_end, 1000 + 99999);
	assert_true(records * RECORD <= 65536 && records * RECORD > 50000);
	free(bytes);
}

static uint64_t records_in(const struct test *test, const char *file)
{
	uint64_t records = 0;
	size_t size, at = 0;
	char *bytes;

	assert_int_equal(kymo_read_file(test->output.dirfd, file, 1 << 24, &bytes, &size), 0);
	while (at < size) {
		const struct kymo_ctf_packet packet = packet_at(bytes, size, &at);

		records += (packet.content_size / 8 - sizeof(packet)) / RECORD;
	}
	free(bytes);
	unlinkat(test->output.dirfd, file, 0);
	return records;
}

static void the_last_records_of_one_stream_displace_those_of_another_before_any_is_written(void **state)
{
	struct kymo_kernel_stream *first, *other;
	struct kymo_kernel_pool *pool;
	struct test test;
	uint64_t records;

	begin(&test, 0);
	kymo_kernel_stream_destroy(test.stream);
	check_none(kymo_kernel_pool_create(65536, &pool));
	check_none(kymo_kernel_stream_create("kernel", 4, 2, 32768, pool, &other));
	check_none(kymo_kernel_stream_create("kernel", 3, 1, 32768, pool, &test.stream));
	for (uint64_t i = 0; i < 10000; i++)
		add(&test, 1000 + i, i, 0);
	check_none(kymo_kernel_stream_finish(test.stream, &test.output, 20000, 0));
	first = test.stream;
	test.stream = other;
	for (uint64_t i = 0; i < 100; i++)
		add(&test, 12000 + i, i, 0);
	check_none(kymo_kernel_stream_finish(other, &test.output, 20000, 0));
	check_none(kymo_kernel_pool_write(pool, &test.output));
	records = records_in(&test, "kernel_3") + records_in(&test, "kernel_4");
	assert_int_equal(records, test.output.events);
	assert_int_equal(records * RECORD, test.output.bytes);
	assert_true(records * RECORD <= 65536 && records * RECORD > 50000);
	kymo_kernel_stream_destroy(first);
	kymo_kernel_stream_destroy(other);
	kymo_kernel_pool_destroy(pool);
	close(test.output.dirfd);
	rmdir(test.dir);
}

static void no_record_and_no_loss_make_no_file(void **state)
{
	struct test test;
	size_t size;

	begin(&test, 0);
	free(finish(&test, 1000, 0, &size));
	assert_int_equal(size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_out_of_order_are_put_in_order),
		cmocka_unit_test(stamps_never_fall_below_a_packet_that_is_written),
		cmocka_unit_test(a_loss_stands_between_the_records_around_it),
		cmocka_unit_test(losses_before_the_first_record_are_told),
		cmocka_unit_test(the_flight_recorder_keeps_the_newest_packets),
		cmocka_unit_test(the_last_records_of_one_stream_displace_those_of_another_before_any_is_written),
		cmocka_unit_test(no_record_and_no_loss_make_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
