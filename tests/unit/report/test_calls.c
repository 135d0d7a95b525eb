#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "outputs.h"
#include "report/calls.h"
#include "report/quantiles.h"

/* What the calls of one function came to. */
struct tally {
	uint64_t count, total, self, over_losses, left, unwound, without_entry, open, too_deep;
};

static struct tally tally_of(const struct function *f)
{
	struct tally tally = {
		.over_losses = f->over_losses,
		.left = f->left,
		.unwound = f->unwound,
		.without_entry = f->without_entry,
		.open = f->open,
		.too_deep = f->too_deep,
	};

	if (f->durations) {
		tally.count = f->durations->stats.count;
		tally.total = (uint64_t)f->durations->stats.sum;
		tally.self = f->durations->self_ns;
	}
	return tally;
}

/* Pair the trace in the current directory; `ret` is by event of the entry. */
static void pair(struct tally ret[N_EVENTS])
{
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct kymo_error *error;
	struct threads threads;
	struct calls calls;
	struct step step;
	size_t thread;

	must(kymo_ctf_open(".", &reader));
	must(kymo_threads_init(&threads, kymo_ctf_reader_trace(reader)));
	must(kymo_calls_init(&calls, reader, &threads));
	while (kymo_ctf_next(reader, &record, &error)) {
		must(kymo_threads_find(&threads, &record, &thread));
		must(kymo_calls_add(&calls, thread, &record, &step));
	}
	must(error);
	kymo_calls_finish(&calls);
	memset(ret, 0, N_EVENTS * sizeof(*ret));
	for (size_t i = 0; i < calls.functions.n; i++)
		ret[calls.functions.items[i].entry - calls.trace->events] = tally_of(&calls.functions.items[i]);
	kymo_calls_deinit(&calls);
	kymo_threads_deinit(&threads);
	kymo_ctf_close(reader);
}

static void assert_tally(const struct tally *tally, struct tally expected)
{
	assert_int_equal(tally->count, expected.count);
	assert_int_equal(tally->total, expected.total);
	assert_int_equal(tally->self, expected.self);
	assert_int_equal(tally->over_losses, expected.over_losses);
	assert_int_equal(tally->left, expected.left);
	assert_int_equal(tally->unwound, expected.unwound);
	assert_int_equal(tally->without_entry, expected.without_entry);
	assert_int_equal(tally->open, expected.open);
	assert_int_equal(tally->too_deep, expected.too_deep);
}

/* Pair the moments, as a trace with this schema. */
static void pair_moments(const struct kymo_ctf_trace *trace, const struct moment *moments, size_t n,
			 struct tally ret[N_EVENTS])
{
	struct scratch scratch;

	enter(&scratch);
	write_timeline(scratch.fd, trace, moments, n);
	pair(ret);
	leave(&scratch);
}

static void recursion_is_paired_from_the_inside(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, EVAL, 0 },   { 110, 1, EVAL, 1 },          { 120, 1, EVAL, 2 },     { 121, 1, EVAL_RETURN },
		{ 130, 1, MALLOC, 1 }, { 133, 1, MALLOC_RETURN, 1 }, { 140, 1, EVAL_RETURN }, { 200, 1, EVAL_RETURN },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];

	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	/* 100 of which 30 within, 30 of which 1 and 3 within, 1. */
	assert_tally(&tallies[EVAL], (struct tally){ .count = 3, .total = 131, .self = 97 });
	assert_tally(&tallies[MALLOC], (struct tally){ .count = 1, .total = 3, .self = 3 });
}

static void what_an_exception_leaves_is_dropped_and_its_calls_are_the_callers(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, PARSE },       { 110, 1, EVAL, 0 },
		{ 120, 1, MALLOC, 1 },   { 125, 1, MALLOC_RETURN, 1 },
		{ 130, 1, EVAL, 1 },     { 200, 1, PARSE_RETURN, 0, 0 },
		{ 210, 1, EVAL_RETURN },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];

	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[PARSE], (struct tally){ .count = 1, .total = 100, .self = 95 });
	assert_tally(&tallies[EVAL], (struct tally){ .left = 2, .without_entry = 1 });
	assert_tally(&tallies[MALLOC], (struct tally){ .count = 1, .total = 5, .self = 5 });
}

/* Of parse and eval, with the stack pointer alone. */
static struct kymo_ctf_trace trace_of_stack_pointers(void)
{
	static struct kymo_ctf_field fields[] = { { (char *)"_sp", KYMO_TYPE_X64 } };
	static struct kymo_ctf_event events[N_EVENTS];
	struct kymo_ctf_trace trace = timeline_trace();

	memcpy(events, trace.events, sizeof(events));
	trace.events = events;
	for (int i = PARSE; i <= EVAL_RETURN; i++) {
		trace.events[i].fields = fields;
		trace.events[i].n_fields = 0;
		trace.events[i].has_faults = false;
		trace.events[i].has_stack_pointer = true;
		trace.events[i].size = 20;
	}
	return trace;
}

static void a_call_is_over_when_its_thread_is_seen_above_it(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, EVAL, 0x7000 },        { 110, 1, EVAL, 0x6f00 },
		{ 120, 1, EVAL, 0x6e00 }, /* throws; the second goes on */
		{ 130, 1, PARSE, 0x6e20 },       { 131, 1, PARSE_RETURN, 0x6e20 },
		{ 140, 1, EVAL_RETURN, 0x6f00 }, { 200, 1, EVAL_RETURN, 0x7000 },
		{ 210, 1, PARSE, 0x6e00 },       { 220, 1, EVAL, 0x7000 },
		{ 230, 1, EVAL_RETURN, 0x7000 },
	};
	struct kymo_ctf_trace trace = trace_of_stack_pointers();
	struct tally tallies[N_EVENTS];

	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[EVAL], (struct tally){ .count = 3, .total = 140, .self = 109, .unwound = 1 });
	assert_tally(&tallies[PARSE], (struct tally){ .count = 1, .total = 1, .self = 1, .unwound = 1 });
}

static void calls_on_other_stacks_wait_for_theirs(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, PARSE, 0x7fff0000 },
		{ 110, 1, EVAL, 0x10000 },
		{ 120, 1, EVAL, 0x0ff00 }, /* a coroutine, which waits */
		{ 130, 1, PARSE_RETURN, 0x7fff0000 },
		{ 140, 1, PARSE, 0x7fff0000 },
		{ 141, 1, PARSE_RETURN, 0x7fff0000 },
		{ 150, 1, EVAL_RETURN, 0x0ff00 },
		{ 160, 1, EVAL_RETURN, 0x10000 },
	};
	struct kymo_ctf_trace trace = trace_of_stack_pointers();
	struct tally tallies[N_EVENTS];

	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[PARSE], (struct tally){ .count = 2, .total = 31, .self = 31 });
	assert_tally(&tallies[EVAL], (struct tally){ .count = 2, .total = 80, .self = 50 });
}

static void calls_of_a_near_stack_that_were_taken_for_over_return(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, PARSE, 0x50000 },        { 110, 1, EVAL, 0x40000 },
		{ 120, 1, EVAL, 0x3ff00 }, /* less than STACK_REACH away */
		{ 130, 1, PARSE_RETURN, 0x50000 }, { 140, 1, PARSE, 0x50000 },
		{ 150, 1, EVAL_RETURN, 0x3ff00 },  { 155, 1, PARSE_RETURN, 0x50000 },
		{ 160, 1, EVAL_RETURN, 0x40000 },
	};
	struct kymo_ctf_trace trace = trace_of_stack_pointers();
	struct tally tallies[N_EVENTS];

	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[PARSE], (struct tally){ .count = 2, .total = 45, .self = 45 });
	assert_tally(&tallies[EVAL], (struct tally){ .count = 2, .total = 80, .self = 50 });
}

static void exceptions_without_end_do_not_pile_up(void **state)
{
	enum { N = 10000 };
	static struct moment moments[N + 1];
	struct kymo_ctf_trace trace = trace_of_stack_pointers();
	struct tally tallies[N_EVENTS];

	for (int i = 0; i < N; i++)
		moments[i] = (struct moment){ 100 + (uint64_t)i, 1, EVAL, 0x7000 - 0x100 * (uint64_t)(i % 8) };
	moments[N] = (struct moment){ 200 + N, 1, PARSE, 0x7100 };
	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[EVAL], (struct tally){ .unwound = N });
	assert_tally(&tallies[PARSE], (struct tally){ .open = 1 });
}

static void functions_of_one_offset_in_two_files_are_two(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, PARSE },
		{ 110, 1, MALLOC, 0 },
		{ 120, 1, PARSE_RETURN, 1, 1 },
		{ 130, 1, MALLOC_RETURN, 1 },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];

	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[PARSE], (struct tally){ .count = 1, .total = 20, .self = 20 });
	assert_tally(&tallies[MALLOC], (struct tally){ .left = 1, .without_entry = 1 });
}

static void calls_over_a_loss_on_any_cpu_are_counted_and_not_timed(void **state)
{
	static const struct moment of_cpu_0[] = {
		{ 100, 1, PARSE }, /* over both losses */
		{ 110, 1, MALLOC, 1 },
		{ 120, 1, MALLOC_RETURN, 1 }, /* before: timed */
		{ 990, 1, MALLOC, 2 },
		{ 1010, 1, MALLOC_RETURN, 1 }, /* into the first */
		{ 1500, 1, MALLOC, 3 },
		{ 1510, 1, MALLOC_RETURN, 1 }, /* within it */
		{ 1990, 1, EVAL, 3 },          /* out of it, and does not return */
		{ 2100, 1, MALLOC, 3 },
		{ 2110, 1, MALLOC_RETURN, 1 }, /* behind it: timed */
		{ 2200, 1, PARSE_RETURN, 1, 1 },
		{ 2300, 1, EVAL, 3 },          /* over the second; still open */
		{ 2400, 1, MALLOC_RETURN, 1 }, /* began in nowhere */
		{ 9000, 1, MALLOC, 3 },
		{ 9010, 1, MALLOC_RETURN, 1 }, /* behind both: timed */
	};
	static const struct moment of_cpu_1[] = {
		{ 1000, 2, LINE, 0 }, { 1000, 0, LOSS, 3 }, { 2000, 2, LINE, 0 }, { 2000, 0, LOSS, 0 },
		{ 3000, 2, LINE, 0 }, { 3000, 0, LOSS, 1 }, { 3100, 2, LINE, 0 },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];
	struct scratch scratch;

	enter(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	write_stream(scratch.fd, &trace, "stream_0", 0, of_cpu_0, kymo_countof(of_cpu_0));
	write_stream(scratch.fd, &trace, "stream_1", 1, of_cpu_1, kymo_countof(of_cpu_1));
	pair(tallies);
	assert_tally(&tallies[PARSE], (struct tally){ .over_losses = 1 });
	assert_tally(&tallies[MALLOC],
		     (struct tally){ .count = 3, .total = 30, .self = 30, .over_losses = 2, .without_entry = 1 });
	assert_tally(&tallies[EVAL], (struct tally){ .over_losses = 2 });
	leave(&scratch);
}

static void hits_of_vfork_children_leave_other_calls_as_they_are(void **state)
{
	static const struct moment of_cpu_0[] = {
		{ 100, 1, PARSE }, { 200, 1, MALLOC, 1 }, { 210, 1, MALLOC_RETURN, 1 }, { 300, 1, PARSE_RETURN, 1, 1 }
	};
	static const struct moment of_vforks[] = { { 50, 0, LOSS, 0 }, { 250, 0, LOSS, 7 }, { 260, 0, LOSS, 0 } };
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];
	struct scratch scratch;

	enter(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	write_stream(scratch.fd, &trace, "stream_0", 0, of_cpu_0, kymo_countof(of_cpu_0));
	write_stream(scratch.fd, &trace, "stream_vforks", KYMO_CTF_NO_CPU, of_vforks, kymo_countof(of_vforks));
	pair(tallies);
	assert_tally(&tallies[PARSE], (struct tally){ .count = 1, .total = 200, .self = 190 });
	assert_tally(&tallies[MALLOC], (struct tally){ .count = 1, .total = 10, .self = 10 });
	leave(&scratch);
}

static void lost_returns_do_not_pile_up(void **state)
{
	enum { ROUNDS = 20000 };
	struct moment *moments = calloc(ROUNDS * 5, sizeof(*moments));
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];
	size_t n = 0;

	assert_non_null(moments);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t t = 1000 + i * 100;

		moments[n++] = (struct moment){ t, 1, MALLOC, 1 };
		moments[n++] = (struct moment){ t + 10, 1, MALLOC_RETURN, 1 };
		moments[n++] = (struct moment){ t + 20, 1, MALLOC, 1 };
		/* Its return is lost. */
		moments[n++] = (struct moment){ t + 30, 0, LOSS, i % 2 };
		moments[n++] = (struct moment){ t + 35, 0, LOSS, 0 };
	}
	pair_moments(&trace, moments, n, tallies);
	assert_int_equal(tallies[MALLOC].too_deep, 0);
	assert_int_equal(tallies[MALLOC].without_entry, 0);
	/* Where there was no loss the call is open until the next loss: all but the first calls are certain again. */
	assert_int_equal(tallies[MALLOC].count + tallies[MALLOC].over_losses + tallies[MALLOC].open, 2 * ROUNDS);
	assert_true(tallies[MALLOC].count >= ROUNDS);
	free(moments);
}

static void behind_damage_nothing_is_timed(void **state)
{
	static const struct moment moments[] = {
		{ 100, 1, MALLOC, 1 },  { 110, 1, MALLOC_RETURN, 1 },  { 120, 1, EVAL, 1 },
		{ 2000, 1, MALLOC, 1 }, { 2010, 1, MALLOC_RETURN, 1 }, { 2020, 1, EVAL_RETURN },
	};
	static const struct moment others[] = { { 1000, 2, LINE, 0 }, { 1500, 2, LINE, 0 } };
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];
	struct scratch scratch;

	enter(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	write_stream(scratch.fd, &trace, "stream_0", 0, moments, kymo_countof(moments));
	write_stream(scratch.fd, &trace, "stream_1", 1, others, kymo_countof(others));
	assert_int_equal(truncate("stream_1", sizeof(struct kymo_ctf_packet) + 20), 0);
	pair(tallies);
	assert_tally(&tallies[MALLOC], (struct tally){ .count = 1, .total = 10, .self = 10, .over_losses = 1 });
	assert_tally(&tallies[EVAL], (struct tally){ .over_losses = 1 });
	leave(&scratch);
}

static void a_tid_that_comes_again_is_another_thread(void **state)
{
	static const struct moment moments[] = {
		{ 100, 50, EVAL, 1 },    { 110, 50, MALLOC, 1 },         { 120, 50, MALLOC_RETURN, 1 },
		{ 1000, 50, MALLOC, 1 }, { 1010, 50, MALLOC_RETURN, 1 }, { 1020, 50, EVAL_RETURN },
	};
	struct kymo_ctf_thread threads[] = {
		{ 50, 5, 0, (char *)"a" },
		{ 50, 6, 900, (char *)"b" },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];

	trace.threads = threads;
	trace.n_threads = 2;
	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[EVAL], (struct tally){ .left = 1, .without_entry = 1 });
	assert_tally(&tallies[MALLOC], (struct tally){ .count = 2, .total = 20, .self = 20 });
}

static void nothing_returns_from_before_an_exec(void **state)
{
	static const struct moment moments[] = {
		{ 100, 5, EVAL, 1 },      { 200, 5, EVAL, 2 },      { 1000, 5, EVAL, 1 },
		{ 1010, 5, EVAL_RETURN }, { 1020, 5, EVAL_RETURN },
	};
	struct kymo_ctf_process processes[] = {
		{ .pid = 5, .end = 900, .command = (char *)"sh" },
		{ .pid = 5, .begin = 900, .command = (char *)"cc" },
	};
	struct kymo_ctf_trace trace = timeline_trace();
	struct tally tallies[N_EVENTS];

	trace.processes = processes;
	trace.n_processes = 2;
	pair_moments(&trace, moments, kymo_countof(moments), tallies);
	assert_tally(&tallies[EVAL],
		     (struct tally){ .count = 1, .total = 10, .self = 10, .left = 2, .without_entry = 1 });
}

/* A random walk of many threads, with the truth kept beside it. */
struct walker {
	uint64_t begin[40], children[40];
	int function[40];
	unsigned int depth;
};

static unsigned int next_random(unsigned int *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

static void many_threads_are_paired_each_for_itself(void **state)
{
	enum { THREADS = 300, RECORDS = 40000 };
	static const int entries[] = { MALLOC, PARSE, EVAL };
	struct walker *walkers = calloc(THREADS, sizeof(*walkers));
	struct moment *moments = calloc(RECORDS, sizeof(*moments));
	struct tally expected[N_EVENTS] = { 0 }, tallies[N_EVENTS];
	struct kymo_ctf_trace trace = timeline_trace();
	unsigned int seed = 7;
	uint64_t now = 1000;

	assert_non_null(walkers);
	assert_non_null(moments);
	for (size_t i = 0; i < RECORDS; i++) {
		unsigned int tid = next_random(&seed) % THREADS;
		struct walker *w = &walkers[tid];

		now += 1 + next_random(&seed) % 50;
		if (w->depth < 40 && (!w->depth || next_random(&seed) % 2)) {
			int event = entries[next_random(&seed) % 3];

			moments[i] = (struct moment){ now, (int32_t)tid + 1, event, w->depth };
			w->begin[w->depth] = now;
			w->children[w->depth] = 0;
			w->function[w->depth++] = event;
		} else {
			struct tally *tally;
			uint64_t ns;

			w->depth--;
			tally = &expected[w->function[w->depth]];
			ns = now - w->begin[w->depth];
			moments[i] = (struct moment){ now, (int32_t)tid + 1, w->function[w->depth] + 1 };
			tally->count++;
			tally->total += ns;
			tally->self += ns - w->children[w->depth];
			if (w->depth)
				w->children[w->depth - 1] += ns;
		}
	}
	for (unsigned int tid = 0; tid < THREADS; tid++)
		while (walkers[tid].depth)
			expected[walkers[tid].function[--walkers[tid].depth]].open++;
	pair_moments(&trace, moments, RECORDS, tallies);
	for (size_t i = 0; i < kymo_countof(entries); i++)
		assert_tally(&tallies[entries[i]], expected[entries[i]]);
	free(walkers);
	free(moments);
}

static void quantiles_are_near(void **state)
{
	struct quantiles q = { 0 };

	assert_int_equal(kymo_quantiles_get(&q, 50), 0);
	for (uint64_t i = 1; i <= 60; i++)
		assert_true(kymo_quantiles_add(&q, i));
	/* Small values are exact. */
	assert_int_equal(kymo_quantiles_get(&q, 1), 1);
	assert_int_equal(kymo_quantiles_get(&q, 50), 30);
	assert_int_equal(kymo_quantiles_get(&q, 90), 54);
	assert_int_equal(kymo_quantiles_get(&q, 100), 60);
	kymo_quantiles_deinit(&q);
	for (uint64_t i = 1; i <= 100000; i++)
		assert_true(kymo_quantiles_add(&q, i * 1000003));
	for (unsigned int percent = 1; percent <= 100; percent++) {
		double truth = percent * 1000.0 * 1000003, got = (double)kymo_quantiles_get(&q, percent);

		assert_true(got > truth * 0.984 && got < truth * 1.016);
	}
	kymo_quantiles_deinit(&q);
	assert_true(kymo_quantiles_add(&q, UINT64_MAX));
	assert_true(kymo_quantiles_get(&q, 50) > UINT64_MAX / 64 * 63);
	kymo_quantiles_deinit(&q);
}

/* Two processes, nested calls, one that a loss cuts, one that is left. */
static const struct moment two_processes[] = {
	{ 1000, 10, PARSE },
	{ 1100, 10, MALLOC, 24 },
	{ 1120, 10, MALLOC_RETURN, 0x55 },
	{ 1150, 20, MALLOC, 8 },
	{ 1200, 10, EVAL, 1 },
	{ 1250, 20, MALLOC_RETURN, 0, 0, 1 },
	{ 2000, 10, PARSE_RETURN, 0, 1 },
	{ 3000, 20, MALLOC, 16 },
	{ 3010, 0, LOSS, 2 },
	{ 3020, 20, MALLOC_RETURN, 0x66 },
	{ 3030, 0, LOSS, 0 },
	{ 4000, 21, MALLOC, 16 },
	{ 4040, 21, MALLOC_RETURN, 0x77 },
	{ 4050, 21, EVAL_RETURN },
	{ 5000, 30, LINE, 9 },
};

static void write_two_processes(int dirfd)
{
	static struct kymo_ctf_process processes[] = {
		{ .pid = 10, .parent = 1, .command = (char *)"make -j2" },
		{ .pid = 20, .parent = 10, .begin = 1050, .end = 4800, .command = (char *)"cc -o \x1b a.c" },
		{ .pid = 25, .parent = 10, .begin = 4900, .command = (char *)"true" },
	};
	static struct kymo_ctf_thread threads[] = {
		{ .tid = 10, .pid = 10, .comm = (char *)"make" },
		{ .tid = 20, .pid = 20, .comm = (char *)"cc" },
		{ .tid = 21, .pid = 20, .begin = 3500, .comm = (char *)"cc:worker" },
	};
	struct kymo_ctf_trace trace = timeline_trace();

	trace.processes = processes;
	trace.n_processes = kymo_countof(processes);
	trace.threads = threads;
	trace.n_threads = kymo_countof(threads);
	write_timeline(dirfd, &trace, two_processes, kymo_countof(two_processes));
}

static void a_summary_of_calls_looks_so(void **state)
{
	static const char expected[] =
		".: python3 -c 'import json', pid 4242\n"
		"2023-11-14 22:13:20, 0.000004000 s: 13 events, 3.25M/s; 7 of 9 probes, 3 processes, 4 threads, 1 CPU\n"
		"activity  = #===                =                     ==                     =%                    =\n"
		"lost                                                   x\n"
		"lost 2 events (13 % of all): 0.000002 to 0.000002 s\n"
		"\n"
		"PROCESS            COUNT  RATE/S   SHARE                                 FIRST         LAST\n"
		"20 cc -o \\x1b a.c      7   1.75M   53.8% #############             0.000000150  0.000003050\n"
		"10 make -j2            5   1.25M   38.5% #########                 0.000000000  0.000001000\n"
		"1 event of threads whose process is not known\n"
		"1 process without an event\n"
		"\n"
		"PROBE               COUNT  RATE/S   SHARE                          THREADS        FIRST         LAST\n"
		"libc:malloc             4   1.00M   30.8% #######                        3  0.000000100  0.000003000\n"
		"libc:malloc%return      4   1.00M   30.8% #######                        3  0.000000120  0.000003040\n"
		"app:parse               1    250k    7.7% ##                             1  0.000000000  0.000000000\n"
		"app:parse%return        1    250k    7.7% ##                             1  0.000001000  0.000001000\n"
		"app:eval                1    250k    7.7% ##                             1  0.000000200  0.000000200\n"
		"app:eval%return         1    250k    7.7% ##                             1  0.000003050  0.000003050\n"
		"app:parse+0x8           1    250k    7.7% ##                             1  0.000004000  0.000004000\n"
		"2 probes were never hit\n"
		"\n"
		"CALLS         COUNT    MIN    P50    P90    P99    MAX   MEAN  TOTAL   SELF\n"
		"app:parse         1  1.0us  1.0us  1.0us  1.0us  1.0us  1.0us  1.0us  980ns\n"
		"libc:malloc       3   20ns   40ns  100ns  100ns  100ns   53ns  160ns  160ns\n"
		"app:eval          0      -      -      -      -      -      -      -      -\n"
		"1 call spans a loss and is left out\n"
		"1 call was left without a return\n"
		"1 return has no entry: the call began before the recording, or its entry was lost\n"
		"\n"
		"THREAD           COUNT  RATE/S   SHARE                                   FIRST         LAST\n"
		"10/10 make           5   1.25M   38.5% ##########                  0.000000000  0.000001000\n"
		"20/20 cc             4   1.00M   30.8% ########                    0.000000150  0.000002020\n"
		"20/21 cc:worker      3    750k   23.1% ######                      0.000003000  0.000003050\n"
		"30                   1    250k    7.7% ##                          0.000004000  0.000004000\n"
		"\n"
		"libc:malloc  malloc /lib/libc.so.6+0x1000\n"
		"  size  8 .. 24, mean 16.0                          duration  20ns .. 100ns, mean 53ns\n"
		"    16 2 #########################################     [16ns, 32ns) 1 ##############################\n"
		"     8 1 #####################                         [32ns, 64ns) 1 ##############################\n"
		"    24 1 #####################                        [64ns, 128ns) 1 ##############################\n"
		"  time between  50ns .. 1.9us, mean 966ns\n"
		"      [32ns, 64ns) 1 #############################\n"
		"               ...\n"
		"    [512ns, 1.0us) 1 #############################\n"
		"    [1.0us, 2.0us) 1 #############################\n"
		"\n"
		"libc:malloc%return  malloc /lib/libc.so.6+0x1044\n"
		"  ptr  0x55 .. 0x77                                 time between  130ns .. 1.8us, mean 973ns\n"
		"         0x55 1 ##################################    [128ns, 256ns) 1 #############################\n"
		"         0x66 1 ##################################    [256ns, 512ns) 0\n"
		"         0x77 1 ##################################    [512ns, 1.0us) 1 #############################\n"
		"    (unknown) 1 ##################################    [1.0us, 2.0us) 1 #############################\n"
		"\n"
		"app:parse  parse /bin/app+0x1000\n"
		"  duration  always 1.0us\n"
		"    [512ns, 1.0us) 1 #############################################\n"
		"\n"
		"app:parse%return  parse /bin/app+0x1010\n"
		"  ret  always 0                                     n  always 1\n"
		"    0 1 ##########################################    1 1 ##########################################\n"
		"\n"
		"app:eval  eval /bin/app+0x2000\n"
		"  depth  always 1\n"
		"    1 1 ##########################################################\n"
		"\n"
		"distributions of 2 more probes (--all shows them)\n";
	struct scratch scratch;

	enter(&scratch);
	write_two_processes(scratch.fd);
	assert_report(&(struct kymo_report_options){ .width = 100 }, expected);
	leave(&scratch);
}

static void json_of_calls_looks_so(void **state)
{
	static const char expected[] =
		"{\"format\": 1,\n"
		"\"directory\": \".\",\n"
		"\"clock_frequency\": 1000000000,\n"
		"\"clock_invariant\": true,\n"
		"\"monotonic_offset_ns\": -1699999000000000000,\n"
		"\"environment\": {\n"
		"  \"command\": \"python3 -c 'import json'\",\n"
		"  \"pid\": \"4242\"},\n"
		"\"events\": 13,\n"
		"\"duration_ns\": 4000,\n"
		"\"cpus\": 1, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000005000,\n"
		"\"probes\": [\n"
		"  {\"id\": 1, \"name\": \"libc:malloc\", \"path\": \"/lib/libc.so.6\", \"offset\": 4096, \"symbol\": "
		"\"malloc\", \"build_id\": null, \"kind\": \"entry\", \"function_offset\": 4096, \"count\": 4, "
		"\"threads\": "
		"3, \"more_threads\": false, \"first_ns\": 1700000000000001100, \"last_ns\": 1700000000000004000, "
		"\"arguments\": [{\"name\": \"size\", \"type\": \"u64\", \"faults\": 0, \"count\": 4, \"min\": 8, "
		"\"max\": "
		"24, \"sum\": 64, \"histogram\": [{\"low\": 8, \"high\": 15, \"count\": 1}, {\"low\": 16, \"high\": "
		"31, "
		"\"count\": 3}], \"values\": [{\"value\": 24, \"count\": 1}, {\"value\": 8, \"count\": 1}, {\"value\": "
		"16, "
		"\"count\": 2}]}], \"between_ns\": {\"count\": 3, \"min\": 50, \"max\": 1850, \"sum\": 2900, "
		"\"histogram\": "
		"[{\"low\": 32, \"high\": 63, \"count\": 1}, {\"low\": 512, \"high\": 1023, \"count\": 1}, {\"low\": "
		"1024, "
		"\"high\": 2047, \"count\": 1}]}},\n"
		"  {\"id\": 2, \"name\": \"libc:malloc%return\", \"path\": \"/lib/libc.so.6\", \"offset\": 4164, "
		"\"symbol\": "
		"\"malloc\", \"build_id\": null, \"kind\": \"return\", \"function_offset\": 4096, \"count\": 4, "
		"\"threads\": "
		"3, \"more_threads\": false, \"first_ns\": 1700000000000001120, \"last_ns\": 1700000000000004040, "
		"\"arguments\": [{\"name\": \"ptr\", \"type\": \"x64\", \"faults\": 1, \"count\": 3, \"min\": 85, "
		"\"max\": "
		"119, \"sum\": 306, \"histogram\": [{\"low\": 64, \"high\": 127, \"count\": 3}], \"values\": "
		"[{\"value\": "
		"85, \"count\": 1}, {\"value\": 102, \"count\": 1}, {\"value\": 119, \"count\": 1}]}], \"between_ns\": "
		"{\"count\": 3, \"min\": 130, \"max\": 1770, \"sum\": 2920, \"histogram\": [{\"low\": 128, \"high\": "
		"255, "
		"\"count\": 1}, {\"low\": 512, \"high\": 1023, \"count\": 1}, {\"low\": 1024, \"high\": 2047, "
		"\"count\": "
		"1}]}},\n"
		"  {\"id\": 3, \"name\": \"app:parse\", \"path\": \"/bin/app\", \"offset\": 4096, \"symbol\": "
		"\"parse\", "
		"\"build_id\": null, \"kind\": \"entry\", \"function_offset\": 4096, \"count\": 1, \"threads\": 1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000001000, "
		"\"arguments\": [], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 4, \"name\": \"app:parse%return\", \"path\": \"/bin/app\", \"offset\": 4112, \"symbol\": "
		"\"parse\", \"build_id\": null, \"kind\": \"return\", \"function_offset\": 4096, \"count\": 1, "
		"\"threads\": "
		"1, \"more_threads\": false, \"first_ns\": 1700000000000002000, \"last_ns\": 1700000000000002000, "
		"\"arguments\": [{\"name\": \"ret\", \"type\": \"s32\", \"faults\": 0, \"count\": 1, \"min\": 0, "
		"\"max\": 0, "
		"\"sum\": 0, \"histogram\": [{\"low\": 0, \"high\": 0, \"count\": 1}], \"values\": [{\"value\": 0, "
		"\"count\": 1}]}, {\"name\": \"n\", \"type\": \"u8\", \"faults\": 0, \"count\": 1, \"min\": 1, "
		"\"max\": 1, "
		"\"sum\": 1, \"histogram\": [{\"low\": 1, \"high\": 1, \"count\": 1}], \"values\": [{\"value\": 1, "
		"\"count\": 1}]}], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 5, \"name\": \"app:eval\", \"path\": \"/bin/app\", \"offset\": 8192, \"symbol\": \"eval\", "
		"\"build_id\": null, \"kind\": \"entry\", \"function_offset\": 8192, \"count\": 1, \"threads\": 1, "
		"\"more_threads\": false, \"first_ns\": 1700000000000001200, \"last_ns\": 1700000000000001200, "
		"\"arguments\": [{\"name\": \"depth\", \"type\": \"u32\", \"faults\": 0, \"count\": 1, \"min\": 1, "
		"\"max\": "
		"1, \"sum\": 1, \"histogram\": [{\"low\": 1, \"high\": 1, \"count\": 1}], \"values\": [{\"value\": 1, "
		"\"count\": 1}]}], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 6, \"name\": \"app:eval%return\", \"path\": \"/bin/app\", \"offset\": 8208, \"symbol\": "
		"\"eval\", \"build_id\": null, \"kind\": \"return\", \"function_offset\": 8192, \"count\": 1, "
		"\"threads\": "
		"1, \"more_threads\": false, \"first_ns\": 1700000000000004050, \"last_ns\": 1700000000000004050, "
		"\"arguments\": [], \"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 7, \"name\": \"libc:free\", \"path\": \"/lib/libc.so.6\", \"offset\": 12288, \"symbol\": "
		"\"free\", \"build_id\": null, \"kind\": \"entry\", \"function_offset\": 12288, \"count\": 0, "
		"\"threads\": "
		"0, \"more_threads\": false, \"arguments\": [{\"name\": \"ptr\", \"type\": \"x64\", \"faults\": 0, "
		"\"count\": 0, \"sum\": 0, \"histogram\": [], \"values\": []}]},\n"
		"  {\"id\": 8, \"name\": \"app:parse+0x8\", \"path\": \"/bin/app\", \"offset\": 4104, \"symbol\": "
		"\"parse+0x8\", \"build_id\": null, \"kind\": \"place\", \"count\": 1, \"threads\": 1, "
		"\"more_threads\": "
		"false, \"first_ns\": 1700000000000005000, \"last_ns\": 1700000000000005000, \"arguments\": "
		"[{\"name\": "
		"\"depth\", \"type\": \"u32\", \"faults\": 0, \"count\": 1, \"min\": 9, \"max\": 9, \"sum\": 9, "
		"\"histogram\": [{\"low\": 8, \"high\": 15, \"count\": 1}], \"values\": [{\"value\": 9, \"count\": "
		"1}]}], "
		"\"between_ns\": {\"count\": 0, \"sum\": 0, \"histogram\": []}},\n"
		"  {\"id\": 9, \"name\": \"libc:malloc2\", \"path\": \"/lib/libc.so.6\", \"offset\": 4096, \"symbol\": "
		"\"malloc\", \"build_id\": null, \"kind\": \"entry\", \"function_offset\": 4096, \"count\": 0, "
		"\"threads\": "
		"0, \"more_threads\": false, \"arguments\": [{\"name\": \"size\", \"type\": \"u64\", \"faults\": 0, "
		"\"count\": 0, \"sum\": 0, \"histogram\": [], \"values\": []}]}],\n"
		"\"aggregations\": [],\n"
		"\"calls\": [\n"
		"  {\"name\": \"app:parse\", \"path\": \"/bin/app\", \"function_offset\": 4096, \"symbol\": \"parse\", "
		"\"entry\": 3, \"return\": 4, \"count\": 1, \"over_losses\": 0, \"without_return\": 0, \"unwound\": 0, "
		"\"without_entry\": 0, "
		"\"open\": 0, \"too_deep\": 0, \"duration_ns\": {\"count\": 1, \"min\": 1000, \"max\": 1000, \"sum\": "
		"1000, "
		"\"histogram\": [{\"low\": 512, \"high\": 1023, \"count\": 1}], \"mean\": 1000, \"p50\": 1000, "
		"\"p90\": "
		"1000, \"p99\": 1000}, \"self_ns\": 980},\n"
		"  {\"name\": \"libc:malloc\", \"path\": \"/lib/libc.so.6\", \"function_offset\": 4096, \"symbol\": "
		"\"malloc\", \"entry\": 1, \"return\": 2, \"count\": 3, \"over_losses\": 1, \"without_return\": 0, "
		"\"unwound\": 0, "
		"\"without_entry\": 0, \"open\": 0, \"too_deep\": 0, \"duration_ns\": {\"count\": 3, \"min\": 20, "
		"\"max\": "
		"100, \"sum\": 160, \"histogram\": [{\"low\": 16, \"high\": 31, \"count\": 1}, {\"low\": 32, \"high\": "
		"63, "
		"\"count\": 1}, {\"low\": 64, \"high\": 127, \"count\": 1}], \"mean\": 53, \"p50\": 40, \"p90\": 100, "
		"\"p99\": 100}, \"self_ns\": 160},\n"
		"  {\"name\": \"app:eval\", \"path\": \"/bin/app\", \"function_offset\": 8192, \"symbol\": \"eval\", "
		"\"entry\": 5, \"return\": 6, \"count\": 0, \"over_losses\": 0, \"without_return\": 1, \"unwound\": 0, "
		"\"without_entry\": 1, "
		"\"open\": 0, \"too_deep\": 0}],\n"
		"\"calls_of_other_threads\": 0,\n"
		"\"processes\": [\n"
		"  {\"pid\": 10, \"parent\": 1, \"command\": \"make -j2\", \"begin_ns\": null, \"end_ns\": null, "
		"\"count\": "
		"5, \"first_ns\": 1700000000000001000, \"last_ns\": 1700000000000002000},\n"
		"  {\"pid\": 20, \"parent\": 10, \"command\": \"cc -o \\u001b a.c\", \"begin_ns\": "
		"1700000000000001050, "
		"\"end_ns\": 1700000000000004800, \"count\": 7, \"first_ns\": 1700000000000001150, \"last_ns\": "
		"1700000000000004050},\n"
		"  {\"pid\": 25, \"parent\": 10, \"command\": \"true\", \"begin_ns\": 1700000000000004900, \"end_ns\": "
		"null, "
		"\"count\": 0}],\n"
		"\"threads\": [\n"
		"  {\"tid\": 10, \"pid\": 10, \"name\": \"make\", \"count\": 5, \"first_ns\": 1700000000000001000, "
		"\"last_ns\": 1700000000000002000},\n"
		"  {\"tid\": 20, \"pid\": 20, \"name\": \"cc\", \"count\": 4, \"first_ns\": 1700000000000001150, "
		"\"last_ns\": 1700000000000003020},\n"
		"  {\"tid\": 21, \"pid\": 20, \"name\": \"cc:worker\", \"count\": 3, \"first_ns\": "
		"1700000000000004000, "
		"\"last_ns\": 1700000000000004050},\n"
		"  {\"tid\": 30, \"pid\": null, \"name\": null, \"count\": 1, \"first_ns\": 1700000000000005000, "
		"\"last_ns\": 1700000000000005000}],\n"
		"\"events_of_other_threads\": 0,\n"
		"\"lost_events\": 2,\n"
		"\"lost_in_vforks\": 0,\n"
		"\"overwritten_packets\": 0,\n"
		"\"losses\": [\n"
		"  {\"cpu\": 0, \"events\": 2, \"packets\": 0, \"begin_ns\": 1700000000000003010, \"end_ns\": "
		"1700000000000003030}],\n"
		"\"gaps\": [],\n"
		"\"warnings\": []\n"
		"}\n";
	struct scratch scratch;

	enter(&scratch);
	write_two_processes(scratch.fd);
	assert_report(&(struct kymo_report_options){ .mode = KYMO_REPORT_JSON }, expected);
	leave(&scratch);
}

static void a_narrow_table_of_calls_keeps_count_and_total(void **state)
{
	struct kymo_report_options options = { .all = true };
	struct scratch scratch;

	enter(&scratch);
	write_two_processes(scratch.fd);
	for (options.width = 20; options.width < 200; options.width++) {
		char *text = reported(&options);
		const char *heading = strstr(text, "\nCALLS ");

		assert_non_null(heading);
		assert_non_null(strstr(heading, " COUNT "));
		assert_non_null(strstr(heading, " TOTAL"));
		if (options.width >= 40)
			assert_true((size_t)(strchr(heading + 1, '\n') - heading - 1) <= options.width);
		free(text);
	}
	leave(&scratch);
}

static void threads_that_cannot_be_told_apart_are_said(void **state)
{
	struct kymo_ctf_trace trace = timeline_trace();
	struct kymo_ctf_env env = { (char *)"thread_ids", (char *)"process" };
	struct kymo_report_options options = { 0 };
	kymo_cleanup_free char *text = NULL;
	struct scratch scratch;

	trace.env = &env;
	trace.n_env = 1;
	enter(&scratch);
	write_timeline(scratch.fd, &trace, two_processes, 3);
	text = reported(&options);
	assert_non_null(strstr(text,
			       "\nthreads of a process cannot be told apart in this recording: their calls may be "
			       "mixed up\n"));
	leave(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion_is_paired_from_the_inside),
		cmocka_unit_test(what_an_exception_leaves_is_dropped_and_its_calls_are_the_callers),
		cmocka_unit_test(a_call_is_over_when_its_thread_is_seen_above_it),
		cmocka_unit_test(calls_on_other_stacks_wait_for_theirs),
		cmocka_unit_test(calls_of_a_near_stack_that_were_taken_for_over_return),
		cmocka_unit_test(exceptions_without_end_do_not_pile_up),
		cmocka_unit_test(functions_of_one_offset_in_two_files_are_two),
		cmocka_unit_test(calls_over_a_loss_on_any_cpu_are_counted_and_not_timed),
		cmocka_unit_test(hits_of_vfork_children_leave_other_calls_as_they_are),
		cmocka_unit_test(lost_returns_do_not_pile_up),
		cmocka_unit_test(behind_damage_nothing_is_timed),
		cmocka_unit_test(a_tid_that_comes_again_is_another_thread),
		cmocka_unit_test(nothing_returns_from_before_an_exec),
		cmocka_unit_test(many_threads_are_paired_each_for_itself),
		cmocka_unit_test(quantiles_are_near),
		cmocka_unit_test(a_summary_of_calls_looks_so),
		cmocka_unit_test(json_of_calls_looks_so),
		cmocka_unit_test(a_narrow_table_of_calls_keeps_count_and_total),
		cmocka_unit_test(threads_that_cannot_be_told_apart_are_said),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
