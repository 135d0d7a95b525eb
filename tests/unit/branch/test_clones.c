/*
 * Clones run: all functions of a library are cloned, and what they record is what single steps of the functions
 * themselves pass, block by block; and they return what these return.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch/clone_stand.h"
#include "branch/blocks.h"
#include "clones.h"
#include "probe/code/code.h"
#include "wire/clones.h"

static const struct {
	const char *name;
	long argument;
} kernels[] = {
	{ "kernel_qsort", 1 },  { "kernel_sort", 1 },  { "kernel_interpret", 1 }, { "kernel_tokenize", 1 },
	{ "kernel_fib", 1 },    { "kernel_lz", 1 },    { "kernel_find", 26 },     { "kernel_floats", 2 },
	{ "kernel_labels", 9 }, { "kernel_throw", 4 },
};

static void print_around(const struct clones *clones, const char *what, const uint32_t *list, size_t n, size_t at)
{
	printf("%s:", what);
	for (size_t i = at < 5 ? 0 : at - 5; i < n && i < at + 5; i++)
		printf(" 0x%lx", clones->sites[list[i]] - clones->bias);
	printf("\n");
}

static uint32_t found[KYMO_WIRE_ARENA_RING_SIZE / 4];

static void compare(const struct clones *clones, const char *what, size_t n, const uint32_t *expected,
		    size_t n_expected)
{
	size_t all = KYMO_WIRE_ARENA_RING_SIZE / 4;

	if (n_expected > all) {
		expected += n_expected - all;
		n_expected = all;
	}
	for (size_t i = 0; i < n && i < n_expected; i++) {
		if (found[i] == expected[i])
			continue;
		printf("%s: entry %zu\n", what, i);
		print_around(clones, "steps ", expected, n_expected, i);
		print_around(clones, "clones", found, n, i);
		fail();
	}
	if (n != n_expected) {
		printf("%s: %zu blocks instead of %zu\n", what, n, n_expected);
		fail();
	}
}

/* The first run gets a ring by a gate; then the thread has the ring. */
static size_t run(struct clones *clones, enum clones_way way, long (*function)(long), long argument, long *result_ret)
{
	struct kymo_wire_arena *arena = way == CLONES_GATED ? clones_arena_begin(4) : NULL;

	if (!arena)
		clones_ring_begin();
	clones_put_in(clones);
	*result_ret = function(argument);
	clones_take_out(clones);
	if (!arena)
		return clones_ring_read(found);
	assert_int_equal(arena->sunk, 0);
	assert_in_range(arena->next, 0, 1);
	return arena->next ? clones_arena_read(arena, 0, found) : 0;
}

/* All ways have the same sites, and so one reference. */
static void compare_function(struct clones *clones, const char *path, const char *name, long argument)
{
	long (*function)(long), expected_result;
	uint32_t *expected;
	char what[640];
	size_t n;

	*(void **)&function = dlsym(clones[0].handle, name);
	if (!function)
		return;
	snprintf(what, sizeof(what), "%s of %s", name, path);
	expected = clones_reference(&clones[0], function, argument, &n, &expected_result);
	/* Labels are not understood. */
	assert_true(n > 0 || !strcmp(name, "kernel_labels"));
	for (int way = CLONES_IN_PLACE; way < CLONES_WAYS; way++) {
		long result;

		compare(&clones[way], what, run(&clones[way], way, function, argument, &result), expected, n);
		assert_int_equal(result, expected_result);
	}
	free(expected);
}

static void compare_kernels(const char *pattern, const char *const *compilers, size_t n_compilers)
{
	static const char *const levels[] = { "-O0", "-O2", "-O3" };
	size_t n_libraries = 0, n_levels = sizeof(levels) / sizeof(levels[0]);

	if (!getenv("KYMO_TARGETS"))
		skip();
	for (size_t i = 0; i < n_compilers * n_levels; i++) {
		struct clones clones[CLONES_WAYS];
		char path[512];

		snprintf(path, sizeof(path), pattern, getenv("KYMO_TARGETS"), compilers[i / n_levels],
			 levels[i % n_levels]);
		if (!clones_open(path, false, CLONES_IN_PLACE, &clones[0]))
			continue;
		for (int way = CLONES_APART; way < CLONES_WAYS; way++)
			assert_true(clones_open(path, false, way, &clones[way]));
		n_libraries++;
		for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
			compare_function(clones, path, kernels[k].name, kernels[k].argument);
		for (int way = CLONES_IN_PLACE; way < CLONES_WAYS; way++)
			clones_close(&clones[way]);
	}
	if (!n_libraries)
		skip();
}

static void test_kernels_of_gcc(void **state)
{
	compare_kernels("%s/libkernels-%s%s.so", (const char *const[]){ "gcc" }, 1);
}

static void test_kernels_of_clang(void **state)
{
	compare_kernels("%s/libkernels-%s%s.so", (const char *const[]){ "clang" }, 1);
}

static void test_exceptions(void **state)
{
	compare_kernels("%s/libkernels-throw-%s%s.so", (const char *const[]){ "g++", "clang++" }, 2);
}

/* ---- gates ----------------------------------------------------------------------------------- */

#define THREADS 8
#define RINGS 5

static long (*interpret)(long);

static bool open_kernels(enum clones_way way, struct clones *ret)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/libkernels-gcc-O2.so", getenv("KYMO_TARGETS") ? getenv("KYMO_TARGETS") : ".");
	if (!clones_open(path, false, way, ret))
		return false;
	*(void **)&interpret = dlsym(ret->handle, "kernel_interpret");
	assert_non_null((void *)interpret);
	return true;
}

struct thread {
	pthread_t id;
	pthread_barrier_t *barrier;
	pid_t tid;
	long result;
};

static void *interpret_in_thread(void *data)
{
	struct thread *thread = data;

	thread->tid = gettid();
	/* All live at once, so that none has the stack of another one. */
	pthread_barrier_wait(thread->barrier);
	thread->result = interpret(1);
	return NULL;
}

/* Threads beyond those for which there are rings share the sink, are counted, and run on. */
static void test_a_thread_gets_a_ring_of_its_own(void **state)
{
	static uint32_t first[KYMO_WIRE_ARENA_RING_SIZE / 4];
	const struct kymo_wire_arena_thread *table;
	struct thread threads[THREADS];
	struct kymo_wire_arena *arena;
	pthread_barrier_t barrier;
	struct clones clones;
	size_t n_first;
	long expected;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	expected = interpret(1);
	arena = clones_arena_begin(RINGS);
	table = (const void *)((const uint8_t *)arena + KYMO_WIRE_ARENA_TABLE);
	pthread_barrier_init(&barrier, NULL, THREADS);
	clones_put_in(&clones);
	for (int i = 0; i < THREADS; i++) {
		threads[i].barrier = &barrier;
		assert_int_equal(pthread_create(&threads[i].id, NULL, interpret_in_thread, &threads[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	clones_take_out(&clones);
	pthread_barrier_destroy(&barrier);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(threads[i].result, expected);
	assert_int_equal(arena->sunk, THREADS - RINGS);
	assert_true(arena->next >= RINGS && arena->next <= THREADS);
	n_first = clones_arena_read(arena, 0, first);
	assert_true(n_first > 0);
	for (uint32_t ring = 0; ring < RINGS; ring++) {
		int n_found = 0;

		for (int i = 0; i < THREADS; i++)
			n_found += (pid_t)table[ring].tid == threads[i].tid;
		assert_int_equal(n_found, 1);
		/* All did the same. */
		assert_int_equal(clones_arena_read(arena, ring, found), n_first);
		assert_memory_equal(found, first, n_first * sizeof(*first));
	}
	clones_close(&clones);
}

/* What a recorder that was killed has left in a thread's word: it is not used. */
static void test_the_word_of_another_arena_is_replaced(void **state)
{
	struct kymo_wire_arena *arena;
	struct clones clones;
	long expected;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	expected = interpret(1);
	for (uint64_t other = 1; other < UINT64_C(1) << 47; other <<= 1) {
		arena = clones_arena_begin(1);
		if (other >> 32 == (uint64_t)arena >> 32)
			continue;
		clones_position = other;
		clones_put_in(&clones);
		assert_int_equal(interpret(1), expected);
		clones_take_out(&clones);
		assert_int_equal(clones_position >> 32, (uint64_t)arena >> 32);
		assert_int_equal(arena->next, 1);
	}
	clones_close(&clones);
}

/* ---- points ---------------------------------------------------------------------------------- */

static size_t first_point_of(const struct kymo_clone_map *map, uint64_t vaddr)
{
	for (size_t i = 0; i < map->points.n; i++)
		if (map->points.items[i].vaddr == vaddr)
			return i;
	return map->points.n;
}

/* Each site of a function is found in its clone, and points ascend. */
static void test_clones_know_what_their_code_is_code_of(void **state)
{
	const struct kymo_clone_map *map;
	struct clones clones;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	map = kymo_clones_map(clones.all);
	assert_true(map->points.n > clones.n_sites);
	for (size_t i = 1; i < clones.n_sites; i++) {
		size_t at = first_point_of(map, clones.sites[i] - clones.bias);

		assert_true(at < map->points.n);
		assert_int_equal(kymo_clone_origin(map, map->points.items[at].at + 1)->vaddr,
				 map->points.items[at].vaddr);
	}
	for (size_t i = 1; i < map->points.n; i++)
		assert_true(map->points.items[i].at >= map->points.items[i - 1].at);
	clones_close(&clones);
}

/* ---- what is written ------------------------------------------------------------------------- */

/* Each write is of bytes that are there, within a page, and of none of another write; an island comes before what leads
 * to it. */
static void test_writes_are_apart_and_in_order(void **state)
{
	const struct kymo_clones_write *writes;
	struct clones clones;
	bool *is_written;
	size_t n, n_short = 0;

	if (!clones_open("libc.so.6", true, CLONES_GATED, &clones))
		skip();
	is_written = calloc(clones.text_size, sizeof(bool));
	assert_non_null(is_written);
	writes = kymo_clones_writes(clones.all, &n);
	assert_true(n > clones.n_cloned);
	for (size_t i = 0; i < n; i++) {
		size_t at = writes[i].vaddr + clones.bias - (uint64_t)clones.text;

		assert_int_equal(writes[i].vaddr / 4096, (writes[i].vaddr + writes[i].size - 1) / 4096);
		assert_memory_equal(clones.text + at, writes[i].original, writes[i].size);
		for (size_t k = at; k < at + writes[i].size; k++) {
			assert_false(is_written[k]);
			is_written[k] = true;
		}
		if (writes[i].size == KYMO_JUMP_SIZE) {
			assert_int_equal(writes[i].link, writes[i].vaddr);
			continue;
		}
		n_short++;
		assert_true(i > 0);
		assert_int_equal(writes[i - 1].vaddr, writes[i].link);
		assert_int_equal(writes[i - 1].to, writes[i].to);
		assert_int_equal(kymo_short_jump_target(writes[i].vaddr, writes[i].bytes), writes[i].link);
	}
	assert_true(n_short > 0);
	free(is_written);
	clones_close(&clones);
}

static bool is_any(const struct kymo_extent *function, void *data)
{
	return true;
}

static bool is_fib(const struct kymo_extent *function, void *data)
{
	return function->start == *(const uint64_t *)data;
}

static void test_a_function_is_cloned_alone(void **state)
{
	struct clones clones;
	struct kymo_clones *all;
	uint32_t first;
	uint64_t fib;
	size_t n;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	fib = (uint64_t)dlsym(clones.handle, "kernel_fib") - clones.bias;
	assert_int_equal(kymo_clones_create(&clones.code->code, clones.code->map, is_fib, &fib, NULL, &all), 0);
	assert_int_equal(kymo_clones_n(all), 1);
	assert_int_equal(kymo_clone_parts(kymo_clones_at(all, 0, &first), &n)[0].start, fib);
	assert_int_equal(first, 0);
	(void)kymo_clones_refused(all, &n);
	assert_int_equal(n, 0);
	kymo_clones_destroy(all);
	clones_close(&clones);
}

static bool is_third(void *data)
{
	return ++*(int *)data == 3;
}

static void test_bounds_end_an_analysis(void **state)
{
	int n_asked = 0;
	struct kymo_clones_bounds bounds = { .n_writes = SIZE_MAX };
	struct clones clones;
	struct kymo_clones *all;
	size_t n;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	(void)kymo_clones_writes(clones.all, &n);
	assert_int_equal(kymo_clones_n_writes(clones.all), n);
	for (bounds.n_writes = n - 1; bounds.n_writes <= n; bounds.n_writes++) {
		const int err = kymo_clones_create(&clones.code->code, clones.code->map, is_any, NULL, &bounds, &all);

		assert_int_equal(err, bounds.n_writes == n ? 0 : -E2BIG);
		if (!err)
			kymo_clones_destroy(all);
	}
	bounds.is_given_up = is_third;
	bounds.data = &n_asked;
	assert_int_equal(kymo_clones_create(&clones.code->code, clones.code->map, is_any, NULL, &bounds, &all),
			 -ECANCELED);
	assert_int_equal(n_asked, 3);
	clones_close(&clones);
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* A thread that stands anywhere in a clone where it may go on in the function itself does so, and gives the same
 * result: each point is tried, with the steps of a child. */
static struct move {
	const struct clones *clones;
	uint64_t n_moved, countdown;
} move;

/* Where a context has the registers, by number. */
static const int saved_at[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

static const struct kymo_clone_point *find_origin(const struct clones *clones, uint64_t pc)
{
	const uint64_t at = pc - (uint64_t)clones->code_out;
	const struct kymo_clone_point *point =
		at < clones->code_size ? kymo_clone_origin(kymo_clones_map(clones->all), (uint32_t)at) : NULL;

	return point && point->at == at ? point : NULL;
}

/* As detaching does: the text is restored before a thread is moved there. */
static void move_at_step(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const struct kymo_clone_point *point = find_origin(move.clones, (uint64_t)registers[REG_RIP]);

	if (!point || move.countdown-- > 0)
		return;
	clones_take_out((struct clones *)(uintptr_t)move.clones);
	if (point->pushed < KYMO_CLONE_HOLDS_NONE)
		registers[saved_at[point->pushed]] = *(const greg_t *)(uintptr_t)registers[REG_RSP];
	registers[REG_RSP] += point->lowered;
	registers[REG_RIP] = (greg_t)(point->vaddr + move.clones->bias);
	registers[REG_EFL] &= ~0x100;
	move.n_moved++;
}

static int run_and_move(uint64_t countdown, void (*at_step)(int, siginfo_t *, void *), long (*function)(long),
			long expected)
{
	struct sigaction action = { .sa_sigaction = at_step, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
	/* So nothing lies right below the red zone, where a register may be pushed. */
	static uint8_t stack[1 << 18];
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	long result;

	move.countdown = countdown;
	sigaltstack(&other, NULL);
	sigaction(SIGTRAP, &action, NULL);
	__asm__ volatile("pushf; orl $0x100,(%%rsp); popf" ::: "cc", "memory");
	result = function(1);
	__asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" ::: "cc", "memory");
	return result != expected ? 2 : move.n_moved == 0;
}

static void test_a_thread_may_go_on_in_the_function_itself(void **state)
{
	static const char *const names[] = { "kernel_fib", "kernel_interpret", "kernel_qsort", "kernel_lz" };
	struct clones clones;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	move.clones = &clones;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long (*function)(long), expected;
		int status;

		*(void **)&function = dlsym(clones.handle, names[i]);
		expected = function(1);
		for (uint64_t at = 0; at < 300; at += 7) {
			pid_t child = fork();

			assert_true(child >= 0);
			if (!child) {
				(void)clones_arena_begin(1);
				clones_put_in(&clones);
				_exit(run_and_move(at, move_at_step, function, expected));
			}
			assert_int_equal(waitpid(child, &status, 0), child);
			if (status)
				printf("%s, point %lu: status 0x%x\n", names[i], at, status);
			assert_int_equal(status, 0);
		}
	}
	clones_close(&clones);
}

/* As attaching does: catches are written where a thread stands anywhere, and it goes on in the copy. The register that
 * has the position there is given it. */
static void enter_at_step(int number, siginfo_t *info, void *context)
{
	struct clones *clones = (struct clones *)(uintptr_t)move.clones;
	greg_t *saved = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct user_regs_struct registers = { .rip = (uint64_t)saved[REG_RIP], .orig_rax = (uint64_t)-1 };
	struct kymo_clone_stand stand;
	enum kymo_clone_stand_kind kind = kymo_clones_stand(clones->all, &registers, clones->bias, &stand);
	uint64_t had;

	if (kind == KYMO_STANDS_OUTSIDE || move.countdown-- > 0)
		return;
	if (kind != KYMO_STANDS_IN)
		_exit(3);
	clones_position = (uint64_t)clones_arena_begin(2) + KYMO_WIRE_ARENA_FIRST;
	for (unsigned int i = 0; i < 16; i++)
		*kymo_clone_register(&registers, i) = (uint64_t)saved[saved_at[i]];
	had = *kymo_clone_register(&registers, stand.held);
	kymo_clone_stand_move(&stand, (uint64_t)clones->code_out, clones_position, &registers);
	if (stand.lowered)
		*(uint64_t *)registers.rsp = had;
	clones_put_in(clones);
	for (unsigned int i = 0; i < 16; i++)
		saved[saved_at[i]] = (greg_t)*kymo_clone_register(&registers, i);
	saved[REG_RIP] = (greg_t)registers.rip;
	saved[REG_EFL] &= ~0x100;
	move.n_moved++;
}

static void test_a_thread_may_go_on_in_the_copy(void **state)
{
	static const char *const names[] = { "kernel_fib", "kernel_interpret", "kernel_qsort", "kernel_lz" };
	struct clones clones;

	if (!open_kernels(CLONES_GATED, &clones))
		skip();
	move.clones = &clones;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long (*function)(long), expected;
		int status;

		*(void **)&function = dlsym(clones.handle, names[i]);
		expected = function(1);
		for (uint64_t at = 0; at < 900; at += 11) {
			pid_t child = fork();

			assert_true(child >= 0);
			if (!child)
				_exit(run_and_move(at, enter_at_step, function, expected));
			assert_int_equal(waitpid(child, &status, 0), child);
			if (status)
				printf("%s, instruction %lu: status 0x%x\n", names[i], at, status);
			assert_int_equal(status, 0);
		}
	}
	clones_close(&clones);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels_of_gcc),
		cmocka_unit_test(test_kernels_of_clang),
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_a_thread_gets_a_ring_of_its_own),
		cmocka_unit_test(test_the_word_of_another_arena_is_replaced),
		cmocka_unit_test(test_clones_know_what_their_code_is_code_of),
		cmocka_unit_test(test_writes_are_apart_and_in_order),
		cmocka_unit_test(test_a_function_is_cloned_alone),
		cmocka_unit_test(test_bounds_end_an_analysis),
		cmocka_unit_test(test_a_thread_may_go_on_in_the_function_itself),
		cmocka_unit_test(test_a_thread_may_go_on_in_the_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
