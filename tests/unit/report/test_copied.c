/* System calls with memory, as the kernel has seen them; and calls and other records as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "../ctf/synthetic.h"
#include "outputs.h"
#include "wire/copy.h"

enum { OPENAT, READ, SIGRETURN, EXIT, BACK, MARK, N, INCOMPLETE = 0x80 };

static struct kymo_ctf_trace copied_trace(void)
{
	static struct kymo_ctf_field call[] = {
		{ (char *)"arg1", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg2", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg3", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg4", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg5", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg6", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"sp", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"memory", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_field back[] = {
		{ (char *)"result", KYMO_TYPE_S64, NULL, 0, NULL, false },
		{ (char *)"number", KYMO_TYPE_S64, NULL, 0, NULL, false },
		{ (char *)"memory", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_field mark[] = { { (char *)"path", KYMO_TYPE_STRING, NULL, 0, NULL, false },
						{ (char *)"n", KYMO_TYPE_S32, NULL, 0, NULL, false } };
#define CALL(number, text) \
	{ \
		.id = (number), .offset = (number), .name = (char *)"syscall:" text, .fields = call, .n_fields = 8, \
		.has_faults = true, .kind = KYMO_CTF_SYSCALL \
	}
	static struct kymo_ctf_event events[N] = {
		[OPENAT] = CALL(SYS_openat, "openat"),
		[READ] = CALL(SYS_read, "read"),
		[SIGRETURN] = CALL(SYS_rt_sigreturn, "rt_sigreturn"),
		[EXIT] = CALL(SYS_exit, "exit"),
		[BACK] = { .id = 1001,
			   .name = (char *)"syscall:return",
			   .fields = back,
			   .n_fields = 3,
			   .has_faults = true,
			   .kind = KYMO_CTF_SYSRET },
		[MARK] = { .id = 1002,
			   .name = (char *)"app:mark",
			   .fields = mark,
			   .n_fields = 2,
			   .kind = KYMO_CTF_MARKER },
	};
#undef CALL
	struct kymo_ctf_trace trace = synthetic_trace();

	for (size_t i = 0; i < N; i++)
		kymo_ctf_event_measure(&events[i]);
	trace.events = events;
	trace.n_events = N;
	trace.n_threads = 0;
	return trace;
}

/* One copy, as it lies in a record. */
struct copy {
	uint16_t size;
	struct kymo_copied copied;
	char text[8];
} __attribute__((packed));

static const struct copy nothing = { 0 }, path = { sizeof(struct copy) - 2, { 0x7000, 5, 0 }, "/tmp" },
			 data = { sizeof(struct copy) - 2, { 0x8000, 3, 0 }, "abc" };

struct instant {
	uint64_t tsc;
	int32_t tid;
	int event;
	uint8_t faults;
	uint64_t values[8];
};

static uint64_t of(const void *bytes)
{
	return (uintptr_t)bytes;
}

static void check(const struct instant *instants, size_t n, const struct kymo_report_options *options,
		  const char *expected)
{
	static struct payload payload;
	struct kymo_ctf_trace trace = copied_trace();
	struct kymo_ctf_stream *stream;
	struct scratch scratch;

	enter(&scratch);
	stream = begin_trace(scratch.fd, &trace, "stream_0", 0);
	for (size_t i = 0; i < n; i++)
		payload_add(&payload, &trace.events[instants[i].event], instants[i].tsc, instants[i].tid,
			    instants[i].faults, instants[i].values);
	flush_payload(stream, &payload, instants[0].tsc, instants[n - 1].tsc, 0, 0);
	kymo_ctf_stream_destroy(stream);
	assert_report(options, expected);
	leave(&scratch);
}

static const struct kymo_report_options lines = { .mode = KYMO_REPORT_EVENTS },
					json = { .mode = KYMO_REPORT_EVENTS, .json = true };

#define OPENED(stamp, flag) \
	{ \
		stamp, 7, OPENAT, flag, \
		{ \
			(uint64_t) - 100, 0x7000, 0, 0, 0, 0, 0, of(flag ? &nothing : &path) \
		} \
	}
#define RETURNED(stamp, result, number, bytes) \
	{ \
		stamp, 7, BACK, 0, \
		{ \
			(uint64_t)(result), (uint64_t)(number), of(&bytes) \
		} \
	}

static void memory_is_shown(void **state)
{
	const struct instant instants[] = {
		OPENED(1000, 0),
		RETURNED(1500, 3, SYS_openat, nothing),
		{ 2000, 7, READ, 0, { 3, 0x8000, 10, 0, 0, 0, 0, of(&nothing) } },
		RETURNED(3000, 3, SYS_read, data),
	};

	check(instants, kymo_countof(instants), &lines,
	      "   0.000000000 [000]      7 openat(AT_FDCWD, \"/tmp\", O_RDONLY)      = 3 <0.000000500>\n"
	      "   0.000001000 [000]      7 read(3, \"abc\", 10)                      = 3 <0.000001000>\n");
}

static void what_could_not_be_copied_is_shown_with_the_return(void **state)
{
	const struct instant instants[] = {
		{ 500, 8, READ, 0, { 4, 0x8000, 10, 0, 0, 0, 0, of(&nothing) } },
		OPENED(1000, INCOMPLETE),
		RETURNED(1500, 3, SYS_openat, path),
		OPENED(2000, INCOMPLETE),
	};

	check(instants, kymo_countof(instants), &lines,
	      "   0.000000000 [000]      8 read(4,  <unfinished ...>\n"
	      "   0.000001000 [000]      7 openat(AT_FDCWD, \"/tmp\", O_RDONLY)      = 3 <0.000000500>\n"
	      "               [---]      8 <... read resumed> <unfinished ...>)    = ?\n"
	      "               [---]      7 openat(AT_FDCWD, 0x7000, O_RDONLY)      = ?\n");
}

static void a_return_is_that_of_its_number(void **state)
{
	const struct instant instants[] = {
		OPENED(1000, 0),
		RETURNED(1500, 5, SYS_read, nothing),
		RETURNED(2000, 3, SYS_openat, nothing),
		{ 3000, 7, SIGRETURN, 0, { 0, 0, 0, 0, 0, 0, 0x9000, of(&nothing) } },
		RETURNED(3500, 0, -1, nothing),
	};

	check(instants, kymo_countof(instants), &lines,
	      "   0.000000000 [000]      7 openat(AT_FDCWD, \"/tmp\", O_RDONLY <unfinished ...>\n"
	      "   0.000000500 [000]      7 syscall:return result=5 number=0 memory=(0 bytes)\n"
	      "   0.000001000 [000]      7 <... openat resumed>)                   = 3 <0.000001000>\n"
	      "   0.000002000 [000]      7 rt_sigreturn(0x9000)                    = 0 <0.000000500>\n");
}

static void raw_records_tell_how_much_memory_they_have(void **state)
{
	const struct instant instants[] = { OPENED(1000, 0), OPENED(2000, INCOMPLETE),
					    RETURNED(2500, 3, SYS_openat, path) };

	check(instants, kymo_countof(instants),
	      &(struct kymo_report_options){ .mode = KYMO_REPORT_EVENTS, .raw = true },
	      "   0.000000000 [000]      7 syscall:openat arg1=0xffffffffffffff9c arg2=0x7000 arg3=0x0 arg4=0x0 "
	      "arg5=0x0 arg6=0x0 sp=0x0 memory=(24 bytes)\n"
	      "   0.000001000 [000]      7 syscall:openat arg1=0xffffffffffffff9c arg2=0x7000 arg3=0x0 arg4=0x0 "
	      "arg5=0x0 arg6=0x0 sp=0x0 memory=(0 bytes of more)\n"
	      "   0.000001500 [000]      7 syscall:return result=3 number=257 memory=(24 bytes)\n");
}

static void each_call_and_each_record_is_an_object(void **state)
{
	const struct instant instants[] = {
		{ 1000, 8, READ, 0, { 3, 0x8000, 10, 0, 0, 0, 0, of(&nothing) } },
		OPENED(2000, INCOMPLETE),
		RETURNED(2500, -2, SYS_openat, path),
		{ 3000, 7, MARK, 0, { of("\x1b\"\xff"), (uint64_t)-1 } },
		{ 4000, 7, EXIT, 0, { 1, 0, 0, 0, 0, 0, 0, of(&nothing) } },
	};

	check(instants, kymo_countof(instants), &json,
	      "{\"event\": \"syscall\", \"pid\": null, \"tid\": 7, \"time_ns\": 1700000000000002000, \"number\": 257, "
	      "\"name\": \"openat\", "
	      "\"args\": [\"AT_FDCWD\", \"\\\"/tmp\\\"\", \"O_RDONLY\"], \"result\": -2, \"error\": \"ENOENT\", "
	      "\"shown\": \"-1 ENOENT (No such file or directory)\", \"duration_ns\": 500}\n"
	      "{\"event\": \"probe\", \"pid\": null, \"tid\": 7, \"time_ns\": 1700000000000003000, \"cpu\": 0, "
	      "\"name\": \"app:mark\", \"args\": {\"path\": \"\\u001b\\\"\\ufffd\", \"n\": -1}}\n"
	      "{\"event\": \"syscall\", \"pid\": null, \"tid\": 7, \"time_ns\": 1700000000000004000, \"number\": 60, "
	      "\"name\": \"exit\", \"args\": [\"1\"], \"result\": null}\n"
	      "{\"event\": \"syscall\", \"pid\": null, \"tid\": 8, \"time_ns\": 1700000000000001000, \"number\": 0, "
	      "\"name\": \"read\", \"args\": [\"3\"], \"result\": null}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_shown),
		cmocka_unit_test(what_could_not_be_copied_is_shown_with_the_return),
		cmocka_unit_test(a_return_is_that_of_its_number),
		cmocka_unit_test(raw_records_tell_how_much_memory_they_have),
		cmocka_unit_test(each_call_and_each_record_is_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
