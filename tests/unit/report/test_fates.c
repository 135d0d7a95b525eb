/* On which stacks calls are, where it is known when they return: random programs, with the truth kept beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outputs.h"
#include "report/calls.h"

enum { STACKS = 12, DEPTH = 12, RECORDS = 20000, PROGRAMS = 20 };

/* Stack 0 is main()'s. Of the others, the first `n_inside` are arrays in its frame, the rest is elsewhere. */
struct program {
	unsigned int seed;
	size_t n_stacks, n_inside;
	bool is_downward; /* the first array is the highest */
	bool throws, has_main, has_handlers;
	bool is_star; /* coroutines go on to main() alone */
	uint64_t size;
	/* The trace, and for each call the time at which the call around it began; 0: there is none. */
	struct moment moments[RECORDS];
	uint64_t parents[RECORDS];
	size_t n;
	struct {
		uint64_t top;                                 /* of the memory */
		uint64_t at[DEPTH], low[DEPTH], begin[DEPTH]; /* stack pointers at its entry and at its calls */
		int function[DEPTH];
		unsigned int depth;
	} stacks[STACKS];
	size_t now;
	size_t interrupted; /* by a signal; its handler runs on the last stack */
	bool is_in_handler;
};

static unsigned int next_random(struct program *p, unsigned int n)
{
	p->seed = p->seed * 1103515245 + 12345;
	return (p->seed >> 16) % n;
}

static void say(struct program *p, int event, uint64_t stack_pointer, uint64_t parent)
{
	p->parents[p->n] = parent;
	p->moments[p->n] = (struct moment){ 1000 + 10 * p->n, 1, event, stack_pointer };
	p->n++;
}

static void call(struct program *p)
{
	const unsigned int depth = p->stacks[p->now].depth;
	const uint64_t above = depth ? p->stacks[p->now].low[depth - 1] : p->stacks[p->now].top;

	p->stacks[p->now].at[depth] = above - 16 - 16 * next_random(p, 8);
	p->stacks[p->now].low[depth] = p->stacks[p->now].at[depth];
	p->stacks[p->now].function[depth] = next_random(p, 2) ? PARSE : EVAL;
	p->stacks[p->now].begin[depth] = 1000 + 10 * p->n;
	say(p, p->stacks[p->now].function[depth], p->stacks[p->now].at[depth],
	    depth ? p->stacks[p->now].begin[depth - 1] : 0);
	p->stacks[p->now].depth++;
}

static void come_back(struct program *p)
{
	const unsigned int depth = --p->stacks[p->now].depth;

	say(p, p->stacks[p->now].function[depth] + 1, p->stacks[p->now].at[depth], 0);
}

/* From main() to a coroutine in a call that waits for it; from there back, or on to the next. */
static void go(struct program *p)
{
	const size_t n = p->n_stacks - 1;
	const size_t to = p->now && (p->is_star || next_random(p, 2)) ? 0 : 1 + next_random(p, (unsigned int)n - 1);

	if (!p->now && p->stacks[0].depth == DEPTH)
		return;
	if (!p->now)
		call(p);
	p->now = to;
	if (to && !p->stacks[to].depth)
		call(p);
}

static void take_step(struct program *p)
{
	const unsigned int depth = p->stacks[p->now].depth, what = next_random(p, 20);

	if (what < 8 && depth < DEPTH)
		call(p);
	else if (what < 14 && depth > (!p->now && p->has_main ? 1u : 0u))
		come_back(p);
	else if (what == 14 && p->throws && depth > 3 && p->n + 1 < RECORDS) {
		p->stacks[p->now].depth -= 1 + next_random(p, 2);
		come_back(p);
	} else if (what < 18 && !p->is_in_handler) {
		go(p);
	} else if (what == 18 && p->has_handlers && !p->is_in_handler && depth) {
		p->interrupted = p->now;
		p->is_in_handler = true;
		p->now = p->n_stacks - 1;
		call(p);
	}
	if (p->is_in_handler && !p->stacks[p->now].depth) {
		p->is_in_handler = false;
		p->now = p->interrupted;
	} else if (!p->stacks[p->now].depth) {
		p->now = 0; /* the coroutine is over */
	}
}

/* All that is open comes back. */
static void finish(struct program *p)
{
	for (;;) {
		for (p->now = 0; p->now < p->n_stacks && !p->stacks[p->now].depth; p->now++)
			;
		if (p->now == p->n_stacks)
			return;
		come_back(p);
	}
}

static void run_program(struct program *p)
{
	const uint64_t main_top = 0x7fff0000;

	p->stacks[0].top = main_top;
	for (size_t i = 1; i < p->n_stacks; i++)
		p->stacks[i].top = i > p->n_inside  ? 0x10000000 + 0x4000000 * i
				   : p->is_downward ? main_top - 0x200 - (i - 1) * p->size
						    : main_top - 0x200 - (p->n_inside - i) * p->size;
	p->stacks[p->n_stacks - 1].top -= 0x40;
	if (p->has_main)
		call(p);
	p->stacks[0].top -= 0x400 + p->n_inside * p->size;
	p->stacks[0].low[0] = p->stacks[0].top;
	while (p->n + STACKS * DEPTH < RECORDS)
		take_step(p);
	finish(p);
}

/* Entries that are not within the call that they were made in. */
static size_t count_wrong(const struct program *p, bool has_fates)
{
	static const struct kymo_report_filter words = { .n_threads = 0 };
	struct kymo_ctf_reader *reader;
	struct kymo_ctf_record record;
	struct fates fates = { .is_needed = false };
	struct filter filter = { .words = &words };
	struct kymo_error *error;
	struct threads threads;
	struct calls calls;
	struct step step;
	size_t thread, n = 0, wrong = 0;

	must(kymo_ctf_open(".", &reader));
	filter.trace = kymo_ctf_reader_trace(reader);
	must(kymo_fates_gather(&fates, ".", &filter));
	kymo_threads_init(&threads, kymo_ctf_reader_trace(reader));
	must(kymo_calls_init(&calls, reader, &threads));
	if (has_fates)
		kymo_calls_foresee(&calls, &fates);
	for (; kymo_ctf_next(reader, &record, &error); n++) {
		uint64_t parent = 0;

		must(kymo_threads_find(&threads, &record, &thread));
		must(kymo_calls_add(&calls, thread, &record, &step));
		if (step.kind != STEP_ENTER)
			continue;
		if (calls.stacks.items[thread].now.n > 1)
			parent =
				kymo_stack_at(&calls.stacks.items[thread], calls.stacks.items[thread].now.n - 2)->begin;
		wrong += parent != p->parents[n];
	}
	must(error);
	kymo_calls_finish(&calls);
	for (size_t i = 0; i < calls.functions.n; i++)
		wrong += calls.functions.items[i].without_entry;
	kymo_calls_deinit(&calls);
	kymo_threads_deinit(&threads);
	kymo_fates_deinit(&fates);
	kymo_ctf_close(reader);
	return wrong;
}

/* Wrong ones of many programs, by the rules without fates and with them. */
struct wrong {
	size_t without, with;
};

static struct wrong count_all(const struct program *like, bool is_inside)
{
	struct wrong wrong = { 0 };

	for (unsigned int seed = 1; seed <= PROGRAMS; seed++) {
		struct program *p = calloc(1, sizeof(*p));
		struct kymo_ctf_trace trace = trace_of_stack_pointers();
		struct scratch scratch;

		assert_non_null(p);
		*p = (struct program){ .seed = seed, .is_star = like->is_star, .throws = like->throws };
		p->has_handlers = like->has_handlers;
		p->n_stacks = 4 + seed % 9;
		p->n_inside = !is_inside ? 0 : seed % 3 ? p->n_stacks - 1 : 2;
		p->is_downward = seed / 4 % 2;
		p->has_main = seed % 2;
		p->size = seed % 5 < 3 ? 0x4000 : 0x10000;
		run_program(p);
		enter(&scratch);
		write_timeline(scratch.fd, &trace, p->moments, p->n);
		wrong.without += count_wrong(p, false);
		wrong.with += count_wrong(p, true);
		leave(&scratch);
		free(p);
	}
	print_message("%zu wrong, %zu with fates, of %d\n", wrong.without, wrong.with, RECORDS * PROGRAMS / 2);
	return wrong;
}

/* The shape of most programs: all that is open says what a stack is. */
static void coroutines_that_go_back_to_main_are_right(void **state)
{
	static const struct program like = { .is_star = true };
	const struct wrong wrong = count_all(&like, true);

	assert_true(wrong.without > 1000);
	assert_int_equal(wrong.with, 0);
}

static void stacks_elsewhere_are_right(void **state)
{
	static const struct program like = { .throws = true, .has_handlers = true };

	assert_int_equal(count_all(&like, false).with, 0);
}

/*
 * A call on a new stack right below another one looks like a call there, if it is over before anything else happens.
 * So a few are wrong, and far fewer than without fates.
 */
static void few_are_wrong_where_it_can_not_be_known(void **state)
{
	static const struct program likes[] = {
		{ .has_handlers = true },
		{ .is_star = true, .has_handlers = true },
		{ .has_handlers = true, .throws = true },
	};

	for (size_t i = 0; i < kymo_countof(likes); i++) {
		const struct wrong wrong = count_all(&likes[i], true);

		assert_true(wrong.with * 5 < wrong.without);
		assert_true(wrong.with < RECORDS * PROGRAMS / 2 / 50);
	}
}

/* The return of a later call, whose entry was lost, would be taken for the first one's. */
static void returns_over_a_loss_are_not_believed(void **state)
{
	static const struct moment of_cpu_0[] = {
		{ 100, 1, PARSE, 0x8000 },        { 110, 1, EVAL, 0x7000 },        { 400, 1, PARSE, 0x7800 },
		{ 410, 1, PARSE_RETURN, 0x7800 }, { 420, 1, EVAL_RETURN, 0x7000 }, { 500, 1, PARSE_RETURN, 0x8000 },
	};
	static const struct moment of_cpu_1[] = {
		{ 200, 2, LINE, 0 }, { 200, 0, LOSS, 3 }, { 300, 2, LINE, 0 }, { 300, 0, LOSS, 0 }
	};
	static const struct kymo_report_filter words = { .n_threads = 0 };
	struct kymo_ctf_trace trace = trace_of_stack_pointers();
	struct filter filter = { .words = &words, .trace = &trace };
	struct fates fates = { .is_needed = false };
	struct scratch scratch;

	enter(&scratch);
	must(kymo_ctf_write_metadata(scratch.fd, &trace));
	write_stream(scratch.fd, &trace, "stream_0", 0, of_cpu_0, kymo_countof(of_cpu_0));
	write_stream(scratch.fd, &trace, "stream_1", 1, of_cpu_1, kymo_countof(of_cpu_1));
	must(kymo_fates_gather(&fates, ".", &filter));
	assert_int_equal(fates.leaves.n, 3);
	assert_int_equal(fates.leaves.items[0] & LEAVES_NEVER, LEAVES_NEVER);
	assert_int_equal(fates.leaves.items[1], LEAVES_NEVER);
	assert_int_equal(fates.leaves.items[2], 4);
	kymo_fates_deinit(&fates);
	leave(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coroutines_that_go_back_to_main_are_right),
		cmocka_unit_test(stacks_elsewhere_are_right),
		cmocka_unit_test(returns_over_a_loss_are_not_believed),
		cmocka_unit_test(few_are_wrong_where_it_can_not_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
