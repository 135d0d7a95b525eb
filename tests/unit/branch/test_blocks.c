/*
 * The branches that clones' entries tell are those that single steps take, one by one; where they leave open where a
 * block was entered from, they say so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/search.h"
#include "branch/blocks.h"
#include "branch/branch.h"
#include "clones.h"
#include "wire/clones.h"

/* ---- where a ring ends ----------------------------------------------------------------------- */

static void check_ring(const uint32_t ring[8], ptrdiff_t position, size_t end, size_t n)
{
	const struct branch_ring_entries found = branch_find_entries(ring, 8, position);

	assert_int_equal(found.end, end);
	assert_int_equal(found.n, n);
	assert_int_equal(found.is_full, ring[6] || ring[7]);
}

static void test_the_end_of_a_ring(void **state)
{
	check_ring((const uint32_t[8]){ 0 }, -1, 0, 0);
	check_ring((const uint32_t[8]){ 1, 2, 3 }, -1, 3, 3);
	/* All entries were written once, and the 0 is beyond the ring. */
	check_ring((const uint32_t[8]){ 1, 2, 3, 4, 5, 6, 7, 8 }, -1, 0, 8);
	check_ring((const uint32_t[8]){ 9, 10, 0, 4, 5, 6, 7, 8 }, -1, 2, 7);
	check_ring((const uint32_t[8]){ 0, 2, 3, 4, 5, 6, 7, 8 }, -1, 0, 7);
	check_ring((const uint32_t[8]){ 9, 10, 11, 12, 13, 14, 15, 0 }, -1, 7, 7);
}

/* 20 and 21 are what a handler has left, which came between two stores of entry 4 or 10. */
static void test_what_a_handler_leaves_is_of_neither_side(void **state)
{
	check_ring((const uint32_t[8]){ 4, 0, 20, 21, 0 }, -1, 1, 1);
	check_ring((const uint32_t[8]){ 9, 10, 0, 20, 0, 6, 7, 8 }, -1, 2, 5);
	check_ring((const uint32_t[8]){ 10, 0, 20, 0, 6, 7, 8, 9 }, -1, 1, 5);
	check_ring((const uint32_t[8]){ 20, 0, 5, 6, 7, 8, 10, 0 }, -1, 7, 5);
	/* The position knows. */
	check_ring((const uint32_t[8]){ 9, 10, 0, 20, 0, 6, 7, 8 }, 2, 2, 5);
}

/* ---- against single steps -------------------------------------------------------------------- */

struct list {
	struct kymo_branch *items;
	size_t n, n_gaps, n_unknown;
};

static void add(const struct kymo_branch *branch, bool is_gap, void *data)
{
	struct list *list = data;

	list->items[list->n++] = *branch;
	list->n_gaps += is_gap;
}

static uint64_t *sorted;

static void sort_sites(const struct clones *clones)
{
	sorted = malloc(clones->n_sites * sizeof(*sorted));
	assert_non_null(sorted);
	memcpy(sorted, clones->sites, clones->n_sites * sizeof(*sorted));
	qsort(sorted, clones->n_sites, sizeof(*sorted), kymo_compare_u64);
}

/* The site that a branch to there leads to, or 0. */
static uint64_t site_of(const struct clones *clones, uint64_t address)
{
	if (address >= (uint64_t)clones->text && address - (uint64_t)clones->text < clones->text_size &&
	    !memcmp((const uint8_t *)address, "\xf3\x0f\x1e\xfa", 4))
		address += 4;
	return bsearch(&address, sorted, clones->n_sites, sizeof(*sorted), kymo_compare_u64) ? address : 0;
}

static bool is_same_function(const struct clones *clones, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < clones->n_cloned; i++) {
		const struct branch_function *function = &clones->functions[i];
		size_t n;
		const struct kymo_extent *parts = kymo_clone_parts(function->clone, &n);
		bool has_a = false, has_b = false;

		for (size_t k = 0; k < n; k++) {
			has_a |= a - function->bias >= parts[k].start && a - function->bias < parts[k].end;
			has_b |= b - function->bias >= parts[k].start && b - function->bias < parts[k].end;
		}
		if (has_a && has_b)
			return true;
	}
	return false;
}

/* jmp, jcc: what these lead to within a function is told, whether it is a site or not. */
static bool is_direct_jump(uint64_t at)
{
	const uint8_t *bytes = (const uint8_t *)at;

	return bytes[0] == 0xe9 || bytes[0] == 0xeb || (bytes[0] & 0xf0) == 0x70 ||
	       (bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80);
}

/* Whether it is compared. */
static bool is_seen(const struct clones *clones, uint64_t from, uint64_t to)
{
	return site_of(clones, to) || (from && is_same_function(clones, from, to) && is_direct_jump(from));
}

/* From the newest one back: both have the same branches in the same order. Those that the thread takes after its last
 * block, within that function, are not known. */
static void compare(const struct clones *clones, const char *what, const struct clones_branch *expected,
		    size_t n_expected, struct list *list)
{
	size_t e = n_expected;

	while (e > 0 && !site_of(clones, expected[e - 1].to))
		e--;
	for (size_t i = list->n; i-- > 0;) {
		const struct kymo_branch *found = &list->items[i];
		bool is_known = found->kind != KYMO_BRANCH_ENTER;

		if (!is_seen(clones, found->from, found->to))
			continue;
		while (e > 0 && !is_seen(clones, expected[e - 1].from, expected[e - 1].to))
			e--;
		assert_true(e > 0);
		e--;
		list->n_unknown += !is_known;
		if ((found->to == expected[e].to ||
		     (site_of(clones, found->to) && site_of(clones, found->to) == site_of(clones, expected[e].to))) &&
		    (!is_known || found->from == expected[e].from) &&
		    /* Within a function nothing is left open but returns to itself. */
		    (is_known || !i || !is_same_function(clones, expected[e].from, expected[e].to) ||
		     found->to != expected[e].to || *(const uint8_t *)expected[e].from == 0xc3 ||
		     *(const uint8_t *)expected[e].from == 0xff))
			continue;
		printf("%s: branch %zu of %zu, kind %d: 0x%lx to 0x%lx instead of 0x%lx to 0x%lx\n", what, i, list->n,
		       found->kind, found->from - clones->bias, found->to - clones->bias,
		       expected[e].from - clones->bias, expected[e].to - clones->bias);
		fail();
	}
}

/* Both runs have the same stack: what functions of strings do depends on where these are in a page. */
static struct {
	ucontext_t caller, callee;
	long (*function)(long);
	long argument, result;
} on_stack;

static void call_on_stack(void)
{
	on_stack.result = on_stack.function(on_stack.argument);
}

static long run_on_stack(long argument)
{
	static uint8_t stack[1 << 18] __attribute__((aligned(4096)));

	on_stack.argument = argument;
	assert_int_equal(getcontext(&on_stack.callee), 0);
	on_stack.callee.uc_stack.ss_sp = stack;
	on_stack.callee.uc_stack.ss_size = sizeof(stack);
	on_stack.callee.uc_link = &on_stack.caller;
	makecontext(&on_stack.callee, call_on_stack, 0);
	assert_int_equal(swapcontext(&on_stack.caller, &on_stack.callee), 0);
	return on_stack.result;
}

static void compare_function(struct clones *clones, const char *path, const char *name, long (*function)(long),
			     long argument)
{
	static uint32_t entries[KYMO_WIRE_ARENA_RING_SIZE / 4];
	struct clones_branch *expected;
	struct kymo_wire_arena *arena;
	struct list list = { 0 };
	size_t n_expected, n = 0;
	char what[640];

	snprintf(what, sizeof(what), "%s of %s", name, path);
	on_stack.function = function;
	expected = clones_reference_branches(clones, run_on_stack, argument, &n_expected);
	arena = clones_arena_begin(1);
	clones_put_in(clones);
	(void)run_on_stack(argument);
	clones_take_out(clones);
	if (arena->next)
		n = clones_arena_read(arena, 0, entries);
	/* From one entry to the next there are as many branches as a region has. */
	list.items = calloc(32 * n + 1, sizeof(*list.items));
	assert_non_null(list.items);
	assert_int_equal(branch_follow(clones->functions, clones->n_cloned, entries, n, NULL, add, &list), 0);
	assert_int_equal(list.n_gaps, 0);
	sort_sites(clones);
	compare(clones, what, expected, n_expected, &list);
	free(sorted);
	if (getenv("KYMO_TEST_VERBOSE"))
		printf("%s: %zu entries, %zu branches, %zu from elsewhere, %zu stepped\n", what, n, list.n,
		       list.n_unknown, n_expected);
	free(list.items);
	free(expected);
}

static const struct {
	const char *name;
	long argument;
} kernels[] = {
	{ "kernel_qsort", 1 },  { "kernel_sort", 1 },  { "kernel_interpret", 1 }, { "kernel_tokenize", 1 },
	{ "kernel_fib", 1 },    { "kernel_lz", 1 },    { "kernel_find", 26 },     { "kernel_floats", 2 },
	{ "kernel_labels", 9 }, { "kernel_throw", 4 },
};

static void test_kernels(void **state)
{
	static const char *const files[] = { "gcc-O2", "clang-O3", "throw-g++-O2" };
	size_t n_files = 0;

	if (!getenv("KYMO_TARGETS"))
		skip();
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct clones clones;
		char path[512];

		snprintf(path, sizeof(path), "%s/libkernels-%s.so", getenv("KYMO_TARGETS"), files[i]);
		if (!clones_open(path, false, CLONES_GATED, &clones))
			continue;
		n_files++;
		for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
			long (*function)(long);

			*(void **)&function = dlsym(clones.handle, kernels[k].name);
			if (function)
				compare_function(&clones, path, kernels[k].name, function, kernels[k].argument);
		}
		clones_close(&clones);
	}
	if (!n_files)
		skip();
}

/* ---- functions of libc ----------------------------------------------------------------------- */

/* A second libc, so that the test and its signals do not run clones. */
static struct {
	long (*strtol)(const char *, char **, int);
	void (*qsort)(void *, size_t, size_t, int (*)(const void *, const void *));
	int (*snprintf)(char *, size_t, const char *, ...);
	int (*sscanf)(const char *, const char *, ...);
	char *(*strstr)(const char *, const char *);
	char *(*strtok_r)(char *, const char *, char **);
	double (*strtod)(const char *, char **);
	void *(*malloc)(size_t);
	void (*free)(void *);
	int (*fnmatch)(const char *, const char *, int);
	void *(*bsearch)(const void *, const void *, size_t, size_t, int (*)(const void *, const void *));
	int (*inet_pton)(int, const char *, void *);
	char *(*inet_ntop)(int, const void *, char *, unsigned int);
	long (*a64l)(const char *);
	unsigned int (*rand_r)(unsigned int *);
} libc;

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static long try_numbers(long n)
{
	long sum = 0;
	char *end;

	for (const char *at = "12 -77 0x1f 0777 99999999999999999999 z"; *at != 'z'; at = *end == ' ' ? end + 1 : end)
		sum += libc.strtol(at, &end, 0) + (long)libc.strtod(at, NULL);
	return sum + n + libc.a64l("kymo/.");
}

static long try_sort(long n)
{
	int numbers[200], *found;
	unsigned int seed = 7;

	for (int i = 0; i < n; i++)
		numbers[i] = (int)libc.rand_r(&seed) % 1000;
	libc.qsort(numbers, (size_t)n, sizeof(int), compare_ints);
	found = libc.bsearch(&numbers[n / 2], numbers, (size_t)n, sizeof(int), compare_ints);
	return *found + numbers[0];
}

static long try_text(long n)
{
	char text[300], address[64], *next, *word;
	unsigned char bytes[16];
	int a = 0, b = 0;
	long sum =
		libc.snprintf(text, sizeof(text), "%ld,%-8s|%+.3f %x %c %5.1e,tail", n, "abc", 3.25, 0xbeefu, 'x', 1e9);

	sum += libc.sscanf("17 of 42", "%d of %d", &a, &b) + a + b;
	sum += libc.strstr(text, "tail") - text;
	for (word = libc.strtok_r(text, ", |", &next); word; word = libc.strtok_r(NULL, ", |", &next))
		sum += *word;
	sum += libc.fnmatch("*.[ch]", "clones.c", 0) + libc.fnmatch("a?c*d[!x-z]", "abcccdy", 0);
	sum += libc.inet_pton(10, "fe80::12:7", bytes);
	return sum + *libc.inet_ntop(10, bytes, address, sizeof(address));
}

static long try_memory(long n)
{
	void *blocks[100] = { NULL };

	for (int i = 0; i < n; i++) {
		libc.free(blocks[i * 7 % 100]);
		blocks[i * 7 % 100] = libc.malloc((size_t)i * 37 % 3000 + 1);
	}
	for (int i = 0; i < 100; i++)
		libc.free(blocks[i]);
	return n;
}

static void find_libc(void *handle)
{
#define FIND(name) \
	do { \
		*(void **)&libc.name = dlsym(handle, #name); \
		assert_non_null(libc.name); \
	} while (0)
	FIND(strtol);
	FIND(qsort);
	FIND(snprintf);
	FIND(sscanf);
	FIND(strstr);
	FIND(strtok_r);
	FIND(strtod);
	FIND(malloc);
	FIND(free);
	FIND(fnmatch);
	FIND(bsearch);
	FIND(inet_pton);
	FIND(inet_ntop);
	FIND(a64l);
	FIND(rand_r);
#undef FIND
}

static void test_libc(void **state)
{
	static const struct {
		const char *name;
		long (*function)(long);
		long argument;
	} tries[] = {
		{ "numbers", try_numbers, 3 },
		{ "sort", try_sort, 200 },
		{ "text", try_text, 12345 },
		{ "memory", try_memory, 150 },
	};
	struct clones clones;

	if (!clones_open("libc.so.6", true, CLONES_GATED, &clones))
		skip();
	assert_true(clones.n_cloned > 1000);
	find_libc(clones.handle);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		compare_function(&clones, "libc", tries[i].name, tries[i].function, tries[i].argument);
	clones_close(&clones);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_end_of_a_ring),
		cmocka_unit_test(test_what_a_handler_leaves_is_of_neither_side),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
