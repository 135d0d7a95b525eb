/*
 * All the ways out of a function: those of the functions in exits_code.S, which says itself where they are, and the
 * returns of real libraries, as objdump reads them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/exits.h"
#include "arch/plan.h"
#include "arch/x86_64/map.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "load.h"

/* ---- functions by hand ----------------------------------------------------------------------- */

struct named {
	const char *name;
	uint64_t start, end;
};

struct mark {
	uint64_t vaddr, target, is_tail;
};

extern const uint8_t exits_text[], exits_text_end[];
extern const uint8_t __start_exits_rodata[], __stop_exits_rodata[];
extern const struct named __start_exits_functions[], __stop_exits_functions[];
extern const struct mark __start_exits_marks[], __stop_exits_marks[];
extern const uint64_t __start_exits_labels[], __stop_exits_labels[];

#define N_NAMED ((size_t)(__stop_exits_functions - __start_exits_functions))
#define N_MARKS ((size_t)(__stop_exits_marks - __start_exits_marks))
#define N_LABELS ((size_t)(__stop_exits_labels - __start_exits_labels))

struct by_hand {
	struct kymo_span text, data;
	struct kymo_extent functions[64];
	uint64_t entries[128];
	struct kymo_module_code code;
	struct kymo_entry_map *map;
};

static struct by_hand by_hand;

static int set_up(void **state)
{
	struct by_hand *m = &by_hand;

	m->text = (struct kymo_span){ (uint64_t)exits_text, exits_text, (size_t)(exits_text_end - exits_text) };
	m->data = (struct kymo_span){ (uint64_t)__start_exits_rodata, __start_exits_rodata,
				      (size_t)(__stop_exits_rodata - __start_exits_rodata) };
	for (size_t i = 0; i < N_NAMED; i++) {
		m->functions[i] =
			(struct kymo_extent){ __start_exits_functions[i].start, __start_exits_functions[i].end };
		m->entries[i] = m->functions[i].start;
	}
	for (size_t i = 0; i < N_LABELS; i++)
		m->entries[N_NAMED + i] = __start_exits_labels[i];
	qsort(m->entries, N_NAMED + N_LABELS, sizeof(m->entries[0]), kymo_compare_u64);
	m->code = (struct kymo_module_code){
		.text = &m->text,
		.n_text = 1,
		.data = &m->data,
		.n_data = 1,
		.functions = m->functions,
		.n_functions = N_NAMED,
		.entries = m->entries,
		.n_entries = N_NAMED + N_LABELS,
		.position_independent = true,
	};
	return kymo_entry_map_create(&m->code, &m->map);
}

static int tear_down(void **state)
{
	kymo_entry_map_destroy(by_hand.map);
	return 0;
}

static const struct kymo_extent *extent_of(const char *name)
{
	for (size_t i = 0; i < N_NAMED; i++)
		if (!strcmp(__start_exits_functions[i].name, name))
			return &by_hand.functions[i];
	fail_msg("no function %s", name);
	return NULL;
}

static bool is_in(uint64_t vaddr, const struct kymo_extent *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (vaddr >= parts[i].start && vaddr < parts[i].end)
			return true;
	return false;
}

static int find(const struct kymo_extent *parts, size_t n, struct kymo_exit **ret, size_t *n_ret,
		struct kymo_refusal *refusal)
{
	memset(refusal, 0, sizeof(*refusal));
	return kymo_exits_create(&by_hand.code, by_hand.map, parts, n, ret, n_ret, refusal);
}

/* The exits are those that the source marks in `parts`, of which the first `n_given` are handed in. */
static void exits_are(const struct kymo_extent *parts, size_t n_given, size_t n_parts, size_t expected)
{
	kymo_cleanup_free struct kymo_exit *exits = NULL;
	struct kymo_refusal refusal;
	size_t n, at = 0;
	int err = find(parts, n_given, &exits, &n, &refusal);

	if (err)
		fail_msg("error %d: %s", err, refusal.reason);
	assert_int_equal(n, expected);
	for (size_t i = 0; i < n; i++)
		assert_true(!i || exits[i].vaddr > exits[i - 1].vaddr);
	for (size_t i = 0; i < N_MARKS; i++) {
		const struct mark *mark = &__start_exits_marks[i];

		if (!is_in(mark->vaddr, parts, n_parts))
			continue;
		for (at = 0; at < n && exits[at].vaddr != mark->vaddr; at++)
			;
		assert_true(at < n);
		assert_int_equal(exits[at].is_tail, mark->is_tail);
		assert_int_equal(exits[at].target, mark->target);
		expected--;
	}
	assert_int_equal(expected, 0);
}

static void exits_of(const char *name, size_t expected)
{
	exits_are(extent_of(name), 1, 1, expected);
}

static void exits_of_both(const char *name, const char *part, size_t expected)
{
	struct kymo_extent parts[] = { *extent_of(name), *extent_of(part) };

	exits_are(parts, 1, 2, expected); /* it is found */
	exits_are(parts, 2, 2, expected); /* it is known */
}

static void refused(const char *name, const char *why)
{
	struct kymo_exit *exits = (struct kymo_exit *)&by_hand;
	struct kymo_refusal refusal;
	size_t n = 77;

	assert_int_equal(find(extent_of(name), 1, &exits, &n, &refusal), -EPERM);
	assert_ptr_equal(exits, &by_hand);
	assert_int_equal(n, 77);
	assert_int_equal(refusal.tactic, KYMO_TACTIC_NONE);
	if (!strstr(refusal.reason, why))
		fail_msg("%s: %s", name, refusal.reason);
}

static void every_form_of_return_is_an_exit(void **state)
{
	exits_of("callee", 1);
	exits_of("returns", 4);
	exits_of("calls_all", 1);
	exits_of("loops_to_its_start", 1);
}

static void a_jump_to_another_function_is_an_exit_by_tail(void **state)
{
	exits_of("tail_calls", 3);
	exits_of("tail_with_frame_pointer", 1);
	exits_of("tail_indirect", 3);
}

static void a_function_that_never_returns_has_no_exits(void **state)
{
	exits_of("never_returns", 0);
	exits_of("ends_in_a_system_call", 0);
}

static void jumps_by_tables_and_to_labels_stay_inside(void **state)
{
	exits_of_both("has_table", "table_cold", 4);
	exits_of("has_labels", 1);
}

static void without_a_frame_a_jump_may_be_a_tail_call_although_there_are_labels(void **state)
{
	refused("may_have_labels", "may be a tail call, or a jump inside of the function");
	exits_of("takes_its_frame_down", 1);
}

static void parts_that_were_split_off_belong_to_the_function(void **state)
{
	exits_of_both("has_cold_parts", "has_cold_parts_cold", 2);
	exits_of_both("has_cold_part_at_once", "cold_at_once", 2);
	exits_of_both("has_handler", "handler", 2);
}

static void a_function_that_is_entered_inside_is_refused_and_the_one_that_enters_it_is_not(void **state)
{
	exits_of("enters_inside", 1);
	refused("entered_inside", "jumps into the middle of the one at");
}

static void ways_out_that_cannot_be_told_are_refused(void **state)
{
	refused("conditional_tail", "is a conditional jump to another function");
	refused("falls_into_next", "is the last instruction, and control continues into the next function");
	refused("jumps_with_frame", "jumps to another function with the frame still there");
	refused("returns_to_pushed", "returns to what the function has pushed");
	refused("calls_inside", "calls into the middle of the function");
	refused("returns_far", "leaves the function in a way that is not a near return");
	refused("does_not_decode", "that are no instruction");
}

static void parts_that_are_none_are_refused(void **state)
{
	struct kymo_extent whole = *extent_of("has_labels"), twice[] = { whole, whole };
	struct kymo_extent inside = { whole.start + 1, whole.end }, cut = { whole.start, whole.end - 1 };
	struct kymo_extent outside = { 0x10, 0x20 }, empty = { whole.start, whole.start }, huge = { 0, UINT64_MAX };
	struct kymo_refusal refusal;
	struct kymo_exit *exits;
	size_t n;

	assert_int_equal(find(twice, 2, &exits, &n, &refusal), -EPERM);
	assert_int_equal(find(&inside, 1, &exits, &n, &refusal), -EPERM);
	assert_int_equal(find(&cut, 1, &exits, &n, &refusal), -EPERM);
	assert_int_equal(find(&outside, 1, &exits, &n, &refusal), -EPERM);
	assert_int_equal(find(&empty, 1, &exits, &n, &refusal), -EPERM);
	assert_int_equal(find(&huge, 1, &exits, &n, &refusal), -EPERM);
	assert_int_equal(find(&whole, 0, &exits, &n, &refusal), -EINVAL);
	assert_int_equal(kymo_exits_create(&by_hand.code, by_hand.map, &inside, 1, &exits, &n, NULL), -EPERM);
}

/* ---- each instruction ------------------------------------------------------------------------ */

static void every_instruction_of_a_function_is_listed(void **state)
{
	static const uint8_t offsets[] = { 0, 1, 4, 7, 10, 13, 18, 20, 21 };
	const struct kymo_extent *extent = extent_of("has_labels");
	uint64_t *list = NULL;
	size_t n = 0;

	assert_int_equal(kymo_instructions_create(by_hand.map, extent->start, extent->end, &list, &n), 0);
	assert_int_equal(n, kymo_countof(offsets));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(list[i], extent->start + offsets[i]);
	free(list);
	assert_int_equal(kymo_instructions_create(by_hand.map, extent->start + 1, extent->start + 10, &list, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(list[0], extent->start + 1);
	assert_int_equal(list[2], extent->start + 7);
	free(list);
}

static void instructions_of_what_does_not_decode_are_not_listed(void **state)
{
	const struct kymo_extent *extent = extent_of("does_not_decode");
	uint64_t *list = NULL;
	size_t n = 77;

	assert_int_equal(kymo_instructions_create(by_hand.map, extent->start, extent->end, &list, &n), -EPERM);
	assert_int_equal(kymo_instructions_create(by_hand.map, 0x10, 0x20, &list, &n), -EPERM);
	assert_int_equal(kymo_instructions_create(by_hand.map, UINT64_MAX - 5, UINT64_MAX, &list, &n), -EPERM);
	assert_null(list);
	assert_int_equal(n, 77);
}

/* ---- real code ------------------------------------------------------------------------------- */

struct addresses {
	KYMO_VEC(uint64_t) list;
};

/* Whether a line of objdump's, "  401000:\tret" or "repz ret", is a return; its address. */
static bool is_return(const char *line, uint64_t *ret)
{
	char *end;
	const char *text;

	*ret = strtoull(line, &end, 16);
	if (end == line || *end != ':')
		return false;
	text = end + 1 + strspn(end + 1, " \t");
	while (!strncmp(text, "repz ", 5) || !strncmp(text, "bnd ", 4))
		text += strcspn(text, " ") + 1;
	return !strncmp(text, "ret", 3) && strchr(" \tq\n", text[3]);
}

/* All returns of a file, in order. objdump shares no code with what is tested. */
static bool read_returns(const char *path, struct addresses *ret)
{
	kymo_cleanup_free char *command = NULL;
	char line[512];
	uint64_t vaddr;
	FILE *pipe;

	assert_true(asprintf(&command, "objdump -d --no-show-raw-insn '%s' 2>/dev/null", path) > 0);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		if (is_return(line, &vaddr))
			assert_true(kymo_vec_push(&ret->list, vaddr));
	return pclose(pipe) == 0;
}

static size_t lower_bound(const struct addresses *addresses, uint64_t vaddr)
{
	size_t low = 0, high = addresses->list.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addresses->list.items[middle] < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns in the function of which only one of the two knows. */
static size_t count_differences(const struct addresses *returns, const struct kymo_extent *function,
				const struct kymo_exit *exits, size_t n)
{
	size_t differences = 0, at = lower_bound(returns, function->start), i = 0;

	for (;; i++) {
		while (i < n && (exits[i].is_tail || exits[i].vaddr < function->start))
			i++;
		if (i == n || exits[i].vaddr >= function->end)
			break;
		for (; at < returns->list.n && returns->list.items[at] < exits[i].vaddr; at++)
			differences++;
		if (at < returns->list.n && returns->list.items[at] == exits[i].vaddr)
			at++;
		else
			differences++;
	}
	for (; at < returns->list.n && returns->list.items[at] < function->end; at++)
		differences++;
	return differences;
}

struct counts {
	size_t functions, parts, refused, tails, differences;
};

static void count_function(const struct loaded *module, const struct kymo_entry_map *map, size_t i,
			   const struct addresses *returns, struct counts *counts)
{
	const struct kymo_extent *function = &module->code.functions[i];
	struct kymo_refusal refusal;
	struct kymo_exit *exits;
	size_t n;
	int err = kymo_exits_create(&module->code, map, function, 1, &exits, &n, &refusal);

	counts->functions++;
	if (err) {
		assert_int_equal(err, -EPERM);
		assert_true(*refusal.reason);
		/* What the compiler split off is a function as far as .eh_frame tells, and is entered inside. */
		if (strstr(refusal.reason, "jumps into the middle of the one at"))
			counts->parts++;
		else
			counts->refused++;
		return;
	}
	for (size_t k = 0; k < n; k++)
		counts->tails += exits[k].is_tail;
	counts->differences += count_differences(returns, function, exits, n);
	free(exits);
}

static void returns_are_those_that_objdump_finds(void **state)
{
	const char *path = *state;
	struct addresses returns = { 0 };
	struct counts counts = { 0 };
	struct kymo_entry_map *map;
	struct loaded module;

	if (access(path, R_OK) || !load(path, &module)) {
		print_message("skipped: cannot read %s\n", path);
		skip();
	}
	if (!read_returns(path, &returns)) {
		print_message("skipped: objdump cannot be run\n");
		unload(&module);
		kymo_vec_deinit(&returns.list);
		skip();
	}
	assert_int_equal(kymo_entry_map_create(&module.code, &map), 0);
	for (size_t i = 0; i < module.code.n_functions; i++)
		count_function(&module, map, i, &returns, &counts);
	counts.functions -= counts.parts;
	print_message(
		"%s: return probes for %zu of %zu functions (%.2f %%), without %zu that others enter inside; %zu tail "
		"jumps\n",
		path, counts.functions - counts.refused, counts.functions,
		100.0 - 100.0 * (double)counts.refused / (double)counts.functions, counts.parts, counts.tails);
	print_message("  %zu of %zu returns are known to one side alone\n", counts.differences, returns.list.n);
	assert_true(counts.refused * 20 < counts.functions);
	assert_true(counts.differences * 1000 <= returns.list.n);
	kymo_entry_map_destroy(map);
	kymo_vec_deinit(&returns.list);
	unload(&module);
}

#define REAL(name, path) \
	{ \
		"returns_of_" name "_are_those_that_objdump_finds", returns_are_those_that_objdump_finds, NULL, NULL, \
			path \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_return_is_an_exit),
		cmocka_unit_test(a_jump_to_another_function_is_an_exit_by_tail),
		cmocka_unit_test(a_function_that_never_returns_has_no_exits),
		cmocka_unit_test(jumps_by_tables_and_to_labels_stay_inside),
		cmocka_unit_test(without_a_frame_a_jump_may_be_a_tail_call_although_there_are_labels),
		cmocka_unit_test(parts_that_were_split_off_belong_to_the_function),
		cmocka_unit_test(a_function_that_is_entered_inside_is_refused_and_the_one_that_enters_it_is_not),
		cmocka_unit_test(ways_out_that_cannot_be_told_are_refused),
		cmocka_unit_test(parts_that_are_none_are_refused),
		cmocka_unit_test(every_instruction_of_a_function_is_listed),
		cmocka_unit_test(instructions_of_what_does_not_decode_are_not_listed),
		REAL("libc", "/lib/x86_64-linux-gnu/libc.so.6"),
		REAL("python", "/usr/bin/python3.11"),
		REAL("sqlite", "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"),
		REAL("git", "/usr/bin/git"),
		REAL("libcrypto", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
