/* How entries and returns become calls, and how long these took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outputs.h"
#include "report/calls.h"

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
	kymo_threads_init(&threads, kymo_ctf_reader_trace(reader));
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
		{ 2110, 1, MALLOC_RETURN, 1 }, /* after it: timed */
		{ 2200, 1, PARSE_RETURN, 1, 1 },
		{ 2300, 1, EVAL, 3 },          /* over the second; still open */
		{ 2400, 1, MALLOC_RETURN, 1 }, /* began in nowhere */
		{ 9000, 1, MALLOC, 3 },
		{ 9010, 1, MALLOC_RETURN, 1 }, /* after both: timed */
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
