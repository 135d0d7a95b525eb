/*
 * A small trace in a directory of its own, and what tests of traces share. Include after cmocka.h.
 */
#ifndef TESTS_UNIT_CTF_SYNTHETIC_H
#define TESTS_UNIT_CTF_SYNTHETIC_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ctf/ctf.h"
#include "ctf/stream.h"

/* A directory and its descriptor. */
struct scratch {
	char path[4096];
	int fd;
};

static inline void scratch_init(struct scratch *scratch)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(scratch->path, sizeof(scratch->path), "%s/kymo-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(scratch->path))
		abort();
	scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (scratch->fd < 0)
		abort();
}

static inline void scratch_deinit(struct scratch *scratch)
{
	DIR *dir = fdopendir(scratch->fd);

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(scratch->path);
}

/* Records, one behind the other; too large for a stack. */
struct payload {
	uint8_t bytes[1 << 20];
	size_t size;
};

static inline void payload_put_bytes(struct payload *payload, const void *bytes, size_t size)
{
	if (payload->size + size > sizeof(payload->bytes))
		abort();
	memcpy(payload->bytes + payload->size, bytes, size);
	payload->size += size;
}

static inline void payload_put(struct payload *payload, uint64_t value, size_t size)
{
	payload_put_bytes(payload, &value, size);
}

/* Strings and doubles as values of a record. */
static inline uint64_t text_value(const char *text)
{
	return (uintptr_t)text;
}

static inline uint64_t real_value(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Bytes are a value as they lie in a record: a u16, and so many, or so many elements. */
static inline size_t bytes_size(const void *bytes, uint8_t array_of)
{
	uint16_t size;

	memcpy(&size, bytes, sizeof(size));
	return sizeof(size) + (size_t)size * kymo_type_size(kymo_element_type(array_of));
}

/* Append a record. `values` may be NULL where the event has no arguments. */
static inline void payload_add(struct payload *payload, const struct kymo_ctf_event *event, uint64_t tsc, int32_t tid,
			       uint8_t faults, const uint64_t *values)
{
	payload_put(payload, event->id | tsc << KYMO_EVENT_ID_BITS, 8);
	payload_put(payload, (uint32_t)tid, 4);
	if (event->has_faults)
		payload_put(payload, faults, 1);
	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++) {
		const char *text = (const char *)(uintptr_t)values[i];

		if (event->fields[i].type == KYMO_TYPE_STRING)
			payload_put_bytes(payload, text, strlen(text) + 1);
		else if (event->fields[i].type == KYMO_TYPE_BYTES)
			payload_put_bytes(payload, text, bytes_size(text, event->fields[i].array_of));
		else
			payload_put(payload, values[i], kymo_type_size(event->fields[i].type));
	}
}

static inline void must(struct kymo_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "unexpected: %s\n", error->message);
	abort();
}

static inline void write_file(int dirfd, const char *name, const void *data, size_t size)
{
	kymo_cleanup_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || kymo_write_all(fd, data, size))
		abort();
}

/* Append `payload` to a stream as one packet, and empty it. */
static inline void flush_payload(struct kymo_ctf_stream *stream, struct payload *payload, uint64_t begin, uint64_t end,
				 uint64_t discarded, uint64_t seq)
{
	must(kymo_ctf_stream_append(stream, payload->bytes, payload->size, begin, end, discarded, seq));
	payload->size = 0;
}

/* The metadata of a trace and its only stream, or the first of them. The caller destroys it. */
static inline struct kymo_ctf_stream *begin_trace(int dirfd, const struct kymo_ctf_trace *trace, const char *name,
						  uint32_t cpu)
{
	struct kymo_ctf_stream *stream;

	must(kymo_ctf_write_metadata(dirfd, trace));
	must(kymo_ctf_stream_create(dirfd, name, trace->uuid, cpu, &stream));
	return stream;
}

/* The metadata of a trace as text, the caller's. */
static inline char *metadata_of(const struct kymo_ctf_trace *trace)
{
	struct scratch scratch;
	char *text;

	scratch_init(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, trace));
	assert_int_equal(kymo_read_file(scratch.fd, "metadata", 1 << 20, &text, NULL), 0);
	scratch_deinit(&scratch);
	return text;
}

/* `text` with the first `from` replaced. */
static inline char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *result;

	assert_non_null(at);
	assert_true(asprintf(&result, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) >= 0);
	return result;
}

/* The schema of the tests: a clock of 1 GHz that begins at 1700000000 s, so that ticks are nanoseconds. The strings
 * are literals: never give it to kymo_ctf_trace_deinit(). */
static inline struct kymo_ctf_trace synthetic_trace(void)
{
	static struct kymo_ctf_field malloc_fields[] = { { (char *)"size", KYMO_TYPE_U64, NULL, 0, NULL, false } };
	static struct kymo_ctf_field read_fields[] = {
		{ (char *)"fd", KYMO_TYPE_S32, NULL, 0, NULL, false },
		{ (char *)"buf", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"int", KYMO_TYPE_U8, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_event events[] = {
		{ .id = 0,
		  .name = (char *)"libc:malloc",
		  .fields = malloc_fields,
		  .n_fields = 1,
		  .size = 20,
		  .path = (char *)"/usr/lib/libc.so.6",
		  .offset = 0x9a0e0,
		  .symbol = (char *)"malloc",
		  .build_id = (char *)"93ac01" },
		{ .id = 7,
		  .name = (char *)"libc:read",
		  .fields = read_fields,
		  .n_fields = 3,
		  .has_faults = true,
		  .size = 26,
		  .path = (char *)"/tmp/a b?&\"%\xc3\xa9",
		  .symbol = (char *)"f<a, b>+0x12" },
		{ .id = 1048575, .name = (char *)"a \"quoted\"\n\\name\x1b", .size = 12 },
	};
	static struct kymo_ctf_env env[] = {
		{ (char *)"command", (char *)"python3 -c 'import json'" },
		{ (char *)"pid", (char *)"4242" },
	};
	static struct kymo_ctf_thread threads[] = {
		{ .tid = 4242, .comm = (char *)"python3" },
		{ .tid = 4243, .comm = (char *)"evil\x1b[31m\n\"\\" },
	};

	return (struct kymo_ctf_trace){
		.uuid = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255 },
		.clock_frequency = 1000000000,
		.clock_offset_s = 1700000000,
		.clock_offset = 0,
		.clock_is_invariant = true,
		.monotonic_offset_ns = -1699999000000000000,
		.env = env,
		.n_env = kymo_countof(env),
		.events = events,
		.n_events = kymo_countof(events),
		.threads = threads,
		.n_threads = kymo_countof(threads),
	};
}

/*
 * Two streams of the synthetic schema, 12 records:
 *
 *	cpu 0	8 malloc of 1, 2, 4 … 128 bytes at 1000, 2000 … 8000 of thread 4242; then the odd name at 8500 of
 *		thread 9
 *	cpu 1	3 read at 1500, 2500 and 1.0000025 s of thread 4243, fd -1, 3, 3; the last one's buf a fault
 *
 * `discarded` events are lost in cpu 1's second packet.
 */
static inline void write_synthetic(int dirfd, uint64_t discarded)
{
	struct kymo_ctf_trace trace = synthetic_trace();
	struct kymo_ctf_stream *stream = begin_trace(dirfd, &trace, "stream_0", 0);
	static struct payload payload;

	for (uint64_t i = 0; i < 8; i++) {
		uint64_t size = 1u << i;

		payload_add(&payload, &trace.events[0], 1000 * (i + 1), 4242, 0, &size);
	}
	payload_add(&payload, &trace.events[2], 8500, 9, 0, NULL);
	flush_payload(stream, &payload, 1000, 9000, 0, 0);
	kymo_ctf_stream_destroy(stream);

	must(kymo_ctf_stream_create(dirfd, "stream_1", trace.uuid, 1, &stream));
	payload_add(&payload, &trace.events[1], 1500, 4243, 0, (uint64_t[]){ (uint64_t)-1, 0x7fff0000, 200 });
	payload_add(&payload, &trace.events[1], 2500, 4243, 0, (uint64_t[]){ 3, 0x7fff0010, 201 });
	flush_payload(stream, &payload, 1500, 2600, 0, 0);
	payload_add(&payload, &trace.events[1], 1000002500, 4243, 2, (uint64_t[]){ 3, 0, 202 });
	flush_payload(stream, &payload, 1000002500, 1000002500, discarded, 1);
	kymo_ctf_stream_destroy(stream);
}

/*
 * Markers: two copies of one, one of the same name with other fields, one of the same name and fields in another file.
 * One was never hit. As above the strings are literals.
 */
enum { OPEN, OPEN_COPY, OPEN_OTHER, OPEN_ELSEWHERE, NEVER, N_MARKERS };

static inline struct kymo_ctf_trace marked_trace(void)
{
	static struct kymo_ctf_field fields[] = {
		{ (char *)"fd", KYMO_TYPE_S32, NULL, 0, NULL, false },
		{ (char *)"path", KYMO_TYPE_STRING, NULL, 0, NULL, false },
		{ (char *)"ratio", KYMO_TYPE_F64, NULL, 0, NULL, false },
		{ (char *)"why", KYMO_TYPE_STRING, NULL, 0, NULL, false },
		{ (char *)"flags", KYMO_TYPE_X32, NULL, 0, NULL, false },
	};
#define MARKER(id_, name_, n, least, file, at, where) \
	{ \
		.id = (id_), .name = (char *)(name_), .fields = fields, .n_fields = (n), .size = (least), \
		.path = (char *)(file), .offset = (at), .symbol = (char *)"serve+0x4", .build_id = (char *)"01fe", \
		.source = (char *)(where), \
		.format = (char *)((n) == 5   ? "fd=%d path=%s ratio=%f why=%s flags=%x" \
				   : (n) == 1 ? "fd=%d" \
					      : ""), \
		.kind = KYMO_CTF_MARKER \
	}
	static struct kymo_ctf_event events[N_MARKERS] = {
		[OPEN] = MARKER(1, "app:open", 5, 30, "/bin/app", 0x1234, "server.c:120"),
		[OPEN_COPY] = MARKER(2, "app:open", 5, 30, "/bin/app", 0x2000, "server.c:120"),
		[OPEN_OTHER] = MARKER(3, "app:open", 1, 16, "/bin/app", 0x3000, "other.c:7"),
		[OPEN_ELSEWHERE] = MARKER(4, "app:open", 5, 30, "/lib/plugin.so", 0x1234, "server.c:120"),
		[NEVER] = MARKER(5, "app:never", 0, 12, "/bin/app", 0x4000, "server.c:130"),
	};
#undef MARKER
	struct kymo_ctf_trace trace = synthetic_trace();

	trace.events = events;
	trace.n_events = N_MARKERS;
	trace.n_threads = 1;
	return trace;
}

/* What no terminal and no JSON may get as it is: an escape sequence, no UTF-8, a quote, a backslash, a newline. */
#define HOSTILE_TEXT "\x1b[31m\xff\"\\\n"

/* One stream, 5 records of thread 4242, at 1000, 2000 … */
static inline void write_marked(int dirfd)
{
	static struct payload payload;
	struct kymo_ctf_trace trace = marked_trace();
	const struct {
		int event;
		uint64_t values[5];
	} records[] = {
		{ OPEN, { 3, text_value("/etc/passwd"), real_value(0.25), text_value(""), 0x10 } },
		{ OPEN_COPY, { 4, text_value(HOSTILE_TEXT), real_value(-1e300), text_value("\xc3\xa9"), 0xffffffff } },
		{ OPEN_OTHER, { (uint64_t)-1 } },
		{ OPEN_ELSEWHERE, { 5, text_value(""), real_value(0.1), text_value("plain"), 0 } },
		{ OPEN, { 3, text_value("/tmp"), real_value(__builtin_nan("")), text_value(""), 0x11 } },
	};
	struct kymo_ctf_stream *stream = begin_trace(dirfd, &trace, "stream_0", 0);

	for (size_t i = 0; i < kymo_countof(records); i++)
		payload_add(&payload, &trace.events[records[i].event], 1000 * (i + 1), 4242, 0, records[i].values);
	flush_payload(stream, &payload, 1000, 5000, 0, 0);
	kymo_ctf_stream_destroy(stream);
}

/* Run a shell command; its output, which is the caller's, and its exit status. */
static inline char *run(const char *command, int *status)
{
	FILE *pipe = popen(command, "r");
	char *output = NULL;
	size_t size = 0;

	if (!pipe)
		abort();
	if (getdelim(&output, &size, '\0', pipe) < 0) {
		free(output);
		output = calloc(1, 1);
	}
	if (!output)
		abort();
	*status = pclose(pipe);
	return output;
}

static inline bool has_command(const char *name)
{
	char command[256];
	int status;

	snprintf(command, sizeof(command), "command -v %s", name);
	free(run(command, &status));
	return !status;
}

/* Skips the test where there is no such command. */
static inline void needs_command(const char *name)
{
	if (has_command(name))
		return;
	print_message("skipped: %s is not installed\n", name);
	skip();
}

#endif
