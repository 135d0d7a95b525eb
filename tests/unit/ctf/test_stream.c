#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "synthetic.h"

static size_t count_records(const char *dir)
{
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_error *error;
	size_t n = 0, n_warnings;

	must(kymo_ctf_open(dir, &reader));
	while (kymo_ctf_next_unordered(reader, &record, &error))
		n++;
	must(error);
	kymo_ctf_reader_warnings(reader, &n_warnings);
	assert_int_equal(n_warnings, 0);
	kymo_ctf_close(reader);
	return n;
}

static void set_file_limit(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_packet_that_does_not_fit_leaves_the_trace_whole(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	static struct payload payload;
	struct kymo_ctf_stream *stream;
	struct kymo_error *error;
	struct scratch scratch;
	struct stat status;

	scratch_init(&scratch);
	stream = begin_trace(scratch.fd, &trace, "s", 0);
	for (int i = 0; i < 100; i++)
		payload_add(&payload, &trace.events[2], 5, 1, 0, NULL);
	must(kymo_ctf_stream_append(stream, payload.bytes, payload.size, 5, 5, 0, 0));
	/* A limit on the file's size stands for a full disk: the kernel takes a part, then nothing. */
	signal(SIGXFSZ, SIG_IGN);
	set_file_limit(2000);
	error = kymo_ctf_stream_append(stream, payload.bytes, payload.size, 5, 5, 0, 1);
	set_file_limit(RLIM_INFINITY);
	assert_non_null(error);
	assert_string_equal(error->message, "cannot write the stream s: File too large");
	kymo_error_destroy(error);
	assert_int_equal(fstatat(scratch.fd, "s", &status, 0), 0);
	assert_int_equal(status.st_size, sizeof(struct kymo_ctf_packet) + 1200);
	assert_int_equal(kymo_ctf_stream_size(stream), status.st_size);
	assert_int_equal(count_records(scratch.path), 100);

	must(kymo_ctf_stream_append(stream, payload.bytes, payload.size, 5, 5, 0, 1));
	kymo_ctf_stream_destroy(stream);
	payload.size = 0;
	assert_int_equal(count_records(scratch.path), 200);
	scratch_deinit(&scratch);
}

static void a_name_that_readers_pass_over_is_refused(void **state)
{
	static const char *const names[] = { "", "metadata", ".s", "a/b", "there" };
	struct kymo_ctf_stream *stream;
	struct scratch scratch;

	scratch_init(&scratch);
	write_file(scratch.fd, "there", "", 0);
	for (size_t i = 0; i < kymo_countof(names); i++) {
		struct kymo_error *error =
			kymo_ctf_stream_create(scratch.fd, names[i], (const uint8_t[16]){ 0 }, 0, &stream);

		assert_non_null(error);
		kymo_error_destroy(error);
	}
	scratch_deinit(&scratch);
}

/* stderr and the number of lines on stdout. */
static char *babeltrace(const char *dir, int *lines)
{
	char command[8192];
	char *output, *end;
	int status;

	snprintf(command, sizeof(command), "babeltrace2 '%s' 2>&1 >'%s/.out'; wc -l <'%s/.out'", dir, dir, dir);
	output = run(command, &status);
	assert_int_equal(status, 0);
	end = output + strlen(output) - 1;
	while (end > output && end[-1] != '\n')
		end--;
	*lines = atoi(end);
	*end = '\0';
	return output;
}

static void babeltrace2_reads_the_same_without_a_word(void **state)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	kymo_cleanup_free char *errors = NULL;
	struct scratch scratch;
	int lines;

	needs_command("babeltrace2");
	scratch_init(&scratch);
	write_synthetic(scratch.fd, 0);
	/* Names with a newline would count twice. */
	trace.events[2].name = (char *)"\xc3\xa9 \xff";
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	errors = babeltrace(scratch.path, &lines);
	assert_string_equal(errors, "");
	assert_int_equal(lines, 12);
	assert_int_equal(count_records(scratch.path), 12);
	scratch_deinit(&scratch);
}

static void babeltrace2_shows_the_same_strings_and_doubles(void **state)
{
	static const char *const expected[] = {
		"{ fd = 3, path = \"/etc/passwd\", ratio = 0.25, why = \"\", flags = 0x10 }",
		"ratio = -1e+300, why = \"\xc3\xa9\", flags = 0xFFFFFFFF }",
		"{ fd = -1 }",
		"{ fd = 5, path = \"\", ratio = 0.1, why = \"plain\", flags = 0x0 }",
		"{ fd = 3, path = \"/tmp\", ratio = nan, why = \"\", flags = 0x11 }",
	};
	kymo_cleanup_free char *errors = NULL;
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;
	int lines;

	needs_command("babeltrace2");
	scratch_init(&scratch);
	write_marked(scratch.fd);
	errors = babeltrace(scratch.path, &lines);
	assert_string_equal(errors, "");
	assert_int_equal(kymo_read_file(scratch.fd, ".out", 1 << 20, &text, NULL), 0);
	for (size_t i = 0; i < kymo_countof(expected); i++) {
		if (!strstr(text, expected[i]))
			print_message("babeltrace2:\n%s", text);
		assert_non_null(strstr(text, expected[i]));
	}
	assert_int_equal(count_records(scratch.path), kymo_countof(expected));
	scratch_deinit(&scratch);
}

static void babeltrace2_sees_the_same_losses(void **state)
{
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	const struct kymo_ctf_loss *losses;
	kymo_cleanup_free char *errors = NULL;
	struct kymo_error *error;
	struct scratch scratch;
	size_t n;
	int lines;

	needs_command("babeltrace2");
	scratch_init(&scratch);
	write_synthetic(scratch.fd, 5);
	errors = babeltrace(scratch.path, &lines);
	assert_non_null(strstr(errors, "Tracer discarded 5 events between"));
	must(kymo_ctf_open(scratch.path, &reader));
	while (kymo_ctf_next(reader, &record, &error))
		;
	must(error);
	losses = kymo_ctf_reader_losses(reader, &n);
	assert_int_equal(n, 1);
	assert_int_equal(losses[0].events, 5);
	kymo_ctf_close(reader);
	scratch_deinit(&scratch);
}

static void babeltrace2_reads_ten_thousand_events(void **state)
{
	enum { N = 10000 };
	struct kymo_ctf_trace trace = synthetic_trace();
	kymo_cleanup_free struct kymo_ctf_event *events = calloc(N, sizeof(*events));
	kymo_cleanup_free char *errors = NULL;
	struct kymo_ctf_stream *stream;
	static struct payload payload;
	struct scratch scratch;
	int lines;

	needs_command("babeltrace2");
	scratch_init(&scratch);
	trace.events = events;
	trace.n_events = N;
	must(kymo_ctf_stream_create(scratch.fd, "s", trace.uuid, 0, &stream));
	for (uint32_t i = 0; i < N; i++) {
		events[i].id = i;
		assert_true(asprintf(&events[i].name, "libc:function_%u", i) > 0);
		payload_add(&payload, &events[i], i, 1, 0, NULL);
	}
	flush_payload(stream, &payload, 0, N, 0, 0);
	kymo_ctf_stream_destroy(stream);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	errors = babeltrace(scratch.path, &lines);
	assert_string_equal(errors, "");
	assert_int_equal(lines, N);
	assert_int_equal(count_records(scratch.path), N);
	for (uint32_t i = 0; i < N; i++)
		free(events[i].name);
	scratch_deinit(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_that_does_not_fit_leaves_the_trace_whole),
		cmocka_unit_test(a_name_that_readers_pass_over_is_refused),
		cmocka_unit_test(babeltrace2_reads_the_same_without_a_word),
		cmocka_unit_test(babeltrace2_shows_the_same_strings_and_doubles),
		cmocka_unit_test(babeltrace2_sees_the_same_losses),
		cmocka_unit_test(babeltrace2_reads_ten_thousand_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
