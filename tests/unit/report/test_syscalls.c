/* System calls as lines: two records of a call are one, and what others do meanwhile stands between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "../ctf/synthetic.h"
#include "outputs.h"

enum { READ, WRITE, EXIT, EXECVE, VFORK, MARK, FIVE, UNKNOWN, TEXT, RETURN, TEXT_RETURN, N, END_OF_PACKET };

static struct kymo_ctf_trace syscalls_trace(void)
{
	static struct kymo_ctf_field arguments[] = {
		{ (char *)"arg1", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg2", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg3", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg4", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg5", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg6", KYMO_TYPE_X64, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_field texts[] = {
		{ (char *)"arg1", KYMO_TYPE_STRING, NULL, 0, NULL, false },
		{ (char *)"arg2", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg3", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg4", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg5", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg6", KYMO_TYPE_X64, NULL, 0, NULL, false },
	};
	static struct kymo_ctf_field result[] = { { (char *)"result", KYMO_TYPE_S64, NULL, 0, NULL, false } };
#define CALL(number, text, made, count) \
	{ \
		.id = (number), .offset = (number), .name = (char *)"syscall:" text, .fields = (made), \
		.n_fields = (count), .kind = KYMO_CTF_SYSCALL \
	}
	static struct kymo_ctf_event events[N] = {
		[READ] = CALL(SYS_read, "read", arguments, 6),
		[WRITE] = CALL(SYS_write, "write", arguments, 6),
		[EXIT] = CALL(SYS_exit, "exit", arguments, 6),
		[EXECVE] = CALL(SYS_execve, "execve", arguments, 6),
		[VFORK] = CALL(SYS_vfork, "vfork", arguments, 6),
		[MARK] = { .id = 1000, .name = (char *)"app:mark", .kind = KYMO_CTF_MARKER },
		[FIVE] = CALL(SYS_close, "close", arguments, 5),
		[UNKNOWN] = CALL(5000, "odd", arguments, 6),
		[TEXT] = CALL(SYS_open, "open", texts, 6),
		[RETURN] = { .id = 1001,
			     .name = (char *)"syscall:return",
			     .fields = result,
			     .n_fields = 1,
			     .kind = KYMO_CTF_SYSRET },
		[TEXT_RETURN] = { .id = 1002,
				  .name = (char *)"syscall:back",
				  .fields = texts,
				  .n_fields = 1,
				  .kind = KYMO_CTF_SYSRET },
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

/* Ticks are nanoseconds. */
struct instant {
	uint64_t tsc;
	int32_t tid;
	int event;
	uint64_t values[6]; /* of END_OF_PACKET the first: so many events were lost by then */
};

static void write_instants(int dirfd, const struct kymo_ctf_trace *trace, const struct instant *instants, size_t n)
{
	static struct payload payload;
	struct kymo_ctf_stream *stream;
	uint64_t begin = instants[0].tsc, lost = 0, seq = 0;

	must(kymo_ctf_write_metadata(dirfd, trace));
	must(kymo_ctf_stream_create(dirfd, "stream_0", trace->uuid, 0, &stream));
	for (size_t i = 0; i < n; i++) {
		const struct instant *m = &instants[i];

		if (m->event == END_OF_PACKET || payload.size > sizeof(payload.bytes) / 2) {
			lost = m->event == END_OF_PACKET ? m->values[0] : lost;
			flush_payload(stream, &payload, begin, m->tsc, lost, seq++);
			begin = m->tsc;
		}
		if (m->event != END_OF_PACKET)
			payload_add(&payload, &trace->events[m->event], m->tsc, m->tid, 0, m->values);
	}
	flush_payload(stream, &payload, begin, instants[n - 1].tsc, lost, seq);
	kymo_ctf_stream_destroy(stream);
}

static void check(const struct kymo_ctf_trace *trace, const struct instant *instants, size_t n, bool raw,
		  const char *expected)
{
	struct scratch scratch;

	enter(&scratch);
	write_instants(scratch.fd, trace, instants, n);
	assert_report(&(struct kymo_report_options){ .mode = KYMO_REPORT_EVENTS, .raw = raw }, expected);
	leave(&scratch);
}

#define CHECK(instants, raw, expected) \
	do { \
		struct kymo_ctf_trace trace_ = syscalls_trace(); \
		check(&trace_, instants, kymo_countof(instants), raw, expected); \
	} while (0)

static const struct instant two_threads[] = {
	{ 1000, 7, READ, { 3, 0x7000, 10 } }, { 1500, 7, RETURN, { (uint64_t)-9 } },
	{ 2000, 7, READ, { 4, 0x7000, 10 } }, { 3000, 8, WRITE, { 1, 0x8000, 2 } },
	{ 3400, 8, RETURN, { 2 } },           { 4000, 8, MARK },
	{ 5000, 7, RETURN, { 0 } },
};

static void a_call_is_a_line_and_is_taken_up_behind_those_of_others(void **state)
{
	CHECK(two_threads, false,
	      "   0.000000000 [000]      7 read(3, 0x7000, 10)                     = -1 EBADF (Bad file descriptor) "
	      "<0.000000500>\n"
	      "   0.000001000 [000]      7 read(4,  <unfinished ...>\n"
	      "   0.000002000 [000]      8 write(1, 0x8000, 2)                     = 2 <0.000000400>\n"
	      "   0.000003000 [000]      8 app:mark\n"
	      "   0.000004000 [000]      7 <... read resumed>\"\", 10)               = 0 <0.000003000>\n");
}

static void raw_calls_are_two_records(void **state)
{
	static const struct instant instants[] = { { 1000, 7, READ, { 3, 0x7000, 10 } },
						   { 1500, 7, RETURN, { (uint64_t)-9 } } };

	CHECK(instants, true,
	      "   0.000000000 [000]      7 syscall:read arg1=0x3 arg2=0x7000 arg3=0xa arg4=0x0 arg5=0x0 arg6=0x0\n"
	      "   0.000000500 [000]      7 syscall:return result=-9\n");
}

static void a_handlers_calls_are_within_the_one_that_it_interrupts(void **state)
{
	static const struct instant instants[] = {
		{ 1000, 7, READ, { 3, 0x7000, 10 } },
		{ 2000, 7, WRITE, { 1, 0x8000, 2 } },
		{ 3000, 7, RETURN, { 2 } },
		{ 4000, 7, RETURN, { 10 } },
	};

	CHECK(instants, false,
	      "   0.000000000 [000]      7 read(3,  <unfinished ...>\n"
	      "   0.000001000 [000]      7 write(1, 0x8000, 2)                     = 2 <0.000001000>\n"
	      "   0.000003000 [000]      7 <... read resumed>0x7000, 10)           = 10 <0.000003000>\n");
}

static void what_has_no_return_has_no_result(void **state)
{
	static const struct instant instants[] = {
		{ 1000, 7, READ, { 3, 0x7000, 10 } },
		{ 2000, 8, WRITE, { 1, 0x8000, 2 } },
		{ 3000, 9, EXIT, { 5 } },
		{ 4000, 10, READ, { 3, 0x7000, 10 } },
	};

	CHECK(instants, false,
	      "   0.000000000 [000]      7 read(3,  <unfinished ...>\n"
	      "   0.000001000 [000]      8 write(1, 0x8000, 2 <unfinished ...>\n"
	      "   0.000002000 [000]      9 exit(5)                                 = ?\n"
	      "   0.000003000 [000]     10 read(3,  <unfinished ...>)              = ?\n"
	      "               [---]      7 <... read resumed> <unfinished ...>)    = ?\n"
	      "               [---]      8 <... write resumed>)                    = ?\n");
}

static void a_childs_last_call_does_not_take_its_parents_return(void **state)
{
	static const struct instant instants[] = {
		{ 1000, 7, VFORK },
		{ 2000, 7, EXIT, { 1 } },
		{ 3000, 7, RETURN, { 99 } },
		{ 4000, 7, VFORK },
		{ 5000, 7, EXECVE, { 1, 2, 3 } },
		{ 6000, 7, RETURN, { (uint64_t)-2 } },
		{ 7000, 7, EXECVE, { 1, 2, 3 } },
		{ 8000, 7, RETURN, { 98 } },
	};

	CHECK(instants, false,
	      "   0.000000000 [000]      7 vfork( <unfinished ...>\n"
	      "   0.000001000 [000]      7 exit(1)                                 = ?\n"
	      "   0.000002000 [000]      7 <... vfork resumed>)                    = 99 <0.000002000>\n"
	      "   0.000003000 [000]      7 vfork( <unfinished ...>\n"
	      "   0.000004000 [000]      7 execve(0x1, 0x2, 0x3)                   = -1 ENOENT (No such file or "
	      "directory) <0.000001000>\n"
	      "   0.000006000 [000]      7 execve(0x1, 0x2, 0x3)                   = ?\n"
	      "   0.000007000 [000]      7 <... vfork resumed>)                    = 98 <0.000004000>\n");
}

static void a_return_behind_a_loss_is_nobodys(void **state)
{
	static const struct instant instants[] = {
		{ 1000, 7, READ, { 3, 0x7000, 10 } },
		{ 2000, 0, END_OF_PACKET },
		{ 3000, 8, MARK },
		{ 4000, 7, RETURN, { 5 } },
		{ 4500, 0, END_OF_PACKET, { 6 } },
		{ 5000, 7, READ, { 3, 0x7000, 10 } },
		{ 6000, 7, RETURN, { 5 } },
	};

	CHECK(instants, false,
	      "   0.000000000 [000]      7 read(3,  <unfinished ...>\n"
	      "   0.000001000 [000] --- lost 6 events within 2.5us ---\n"
	      "   0.000002000 [000]      8 app:mark\n"
	      "   0.000003000 [000]      7 <... read resumed> <unfinished ...>)    = ?\n"
	      "   0.000003000 [000]      7 syscall:return result=5\n"
	      "   0.000004000 [000]      7 read(3, 0x7000, 10)                     = 5 <0.000001000>\n");
}

static void records_that_only_claim_to_be_calls_stay_records(void **state)
{
	static const struct instant instants[] = {
		{ 1000, 7, RETURN, { 5 } },
		{ 2000, 7, FIVE, { 3 } },
		{ 2500, 7, RETURN, { 0 } },
		{ 3000, 7, UNKNOWN, { 3 } },
		{ 4000, 7, TEXT, { (uint64_t)(uintptr_t) "/tmp" } },
		{ 5000, 7, READ, { 3, 0x7000, 10 } },
		{ 6000, 7, TEXT_RETURN, { (uint64_t)(uintptr_t) "5" } },
	};

	CHECK(instants, false,
	      "   0.000000000 [000]      7 syscall:return result=5\n"
	      "   0.000001000 [000]      7 syscall:close arg1=0x3 arg2=0x0 arg3=0x0 arg4=0x0 arg5=0x0\n"
	      "   0.000001500 [000]      7 syscall:return result=0\n"
	      "   0.000002000 [000]      7 syscall:odd arg1=0x3 arg2=0x0 arg3=0x0 arg4=0x0 arg5=0x0 arg6=0x0\n"
	      "   0.000003000 [000]      7 syscall:open arg1=\"/tmp\" arg2=0x0 arg3=0x0 arg4=0x0 arg5=0x0 arg6=0x0\n"
	      "   0.000004000 [000]      7 read(3,  <unfinished ...>)              = ?\n"
	      "   0.000005000 [000]      7 syscall:back arg1=\"5\"\n");
}

static void a_thread_that_has_anothers_id_ends_its_calls(void **state)
{
	static struct kymo_ctf_thread threads[] = {
		{ .tid = 7, .pid = 4242, .comm = (char *)"first" },
		{ .tid = 7, .pid = 4242, .begin = 2000, .comm = (char *)"second" },
	};
	static const struct instant instants[] = {
		{ 1000, 7, READ, { 3, 0x7000, 10 } },
		{ 3000, 7, WRITE, { 1, 0x8000, 2 } },
		{ 4000, 7, RETURN, { 2 } },
	};
	struct kymo_ctf_trace trace = syscalls_trace();

	trace.threads = threads;
	trace.n_threads = kymo_countof(threads);
	check(&trace, instants, kymo_countof(instants), false,
	      "   0.000000000 [000]      7 first read(3,  <unfinished ...>)              = ?\n"
	      "   0.000002000 [000]      7 second write(1, 0x8000, 2)                     = 2 <0.000001000>\n");
}

/* More than are kept: those are given up, the longest open first. */
static void calls_within_calls_without_end_are_bounded(void **state)
{
	enum { MADE = 5000 };
	static struct instant instants[MADE];
	struct kymo_ctf_trace trace = syscalls_trace();
	struct scratch scratch;
	char *text;
	size_t n = 0;

	for (size_t i = 0; i < MADE; i++)
		instants[i] = (struct instant){ 1000 + i, 7, READ, { i } };
	enter(&scratch);
	write_instants(scratch.fd, &trace, instants, MADE);
	text = reported(&(struct kymo_report_options){ .mode = KYMO_REPORT_EVENTS });
	leave(&scratch);
	for (const char *at = text; (at = strstr(at, "= ?\n")); at++)
		n++;
	assert_int_equal(n, MADE);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_a_line_and_is_taken_up_behind_those_of_others),
		cmocka_unit_test(raw_calls_are_two_records),
		cmocka_unit_test(a_handlers_calls_are_within_the_one_that_it_interrupts),
		cmocka_unit_test(what_has_no_return_has_no_result),
		cmocka_unit_test(a_childs_last_call_does_not_take_its_parents_return),
		cmocka_unit_test(a_return_behind_a_loss_is_nobodys),
		cmocka_unit_test(records_that_only_claim_to_be_calls_stay_records),
		cmocka_unit_test(a_thread_that_has_anothers_id_ends_its_calls),
		cmocka_unit_test(calls_within_calls_without_end_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
