/* What the golden cases cannot show: names, limits, damaged input, and how much of real libraries is planned. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/fetch.h"
#include "base/cleanup.h"
#include "load.h"
#include "mix.h"
#include "room.h"

/* ---- names ----------------------------------------------------------------------------------- */

static void registers_have_the_kernels_names_and_the_processors(void **state)
{
	static const struct {
		const char *name;
		int number;
		enum kymo_type type;
	} cases[] = {
		{ "ax", 0, KYMO_TYPE_X64 },    { "rax", 0, KYMO_TYPE_X64 },    { "eax", 0, KYMO_TYPE_X32 },
		{ "al", 0, KYMO_TYPE_X8 },     { "cx", 1, KYMO_TYPE_X64 },     { "dx", 2, KYMO_TYPE_X64 },
		{ "ebx", 3, KYMO_TYPE_X32 },   { "sp", 4, KYMO_TYPE_X64 },     { "spl", 4, KYMO_TYPE_X8 },
		{ "rbp", 5, KYMO_TYPE_X64 },   { "si", 6, KYMO_TYPE_X64 },     { "sil", 6, KYMO_TYPE_X8 },
		{ "di", 7, KYMO_TYPE_X64 },    { "rdi", 7, KYMO_TYPE_X64 },    { "edi", 7, KYMO_TYPE_X32 },
		{ "dil", 7, KYMO_TYPE_X8 },    { "r8", 8, KYMO_TYPE_X64 },     { "r9d", 9, KYMO_TYPE_X32 },
		{ "r10w", 10, KYMO_TYPE_X16 }, { "r15b", 15, KYMO_TYPE_X8 },   { "ip", 16, KYMO_TYPE_X64 },
		{ "rip", 16, KYMO_TYPE_X64 },  { "flags", 17, KYMO_TYPE_X64 }, { "eflags", 17, KYMO_TYPE_X32 },
	};

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		enum kymo_type type = KYMO_N_TYPES;

		assert_int_equal(kymo_register_parse(cases[i].name, strlen(cases[i].name), &type), cases[i].number);
		assert_int_equal(type, cases[i].type);
	}
}

static void other_words_are_no_registers(void **state)
{
	static const char *const words[] = { "",    "r",   "r7",   "r16", "r1",  "r10x", "r10dd", "rax1",       "ah",
					     "rr8", "%di", "xmm0", "RAX", "ral", "edil", "di ",   "flagsflags", "cs" };
	enum kymo_type type = KYMO_N_TYPES;

	for (size_t i = 0; i < kymo_countof(words); i++)
		assert_int_equal(kymo_register_parse(words[i], strlen(words[i]), &type), -1);
	assert_int_equal(kymo_register_parse("di\0x", 4, &type), -1);
	assert_int_equal(kymo_register_parse("dixx", 2, &type), 7);
}

static void tactics_have_names(void **state)
{
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_JUMP), "jump");
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_GROUP), "group");
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_PUN), "pun");
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_PREFIX), "prefixed pun");
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_SUCCESSOR), "evicted successor");
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_NEIGHBOR), "evicted neighbor");
	assert_string_equal(kymo_tactic_name(KYMO_TACTIC_NONE), "none");
	assert_string_equal(kymo_tactic_name(KYMO_N_TACTICS), "none");
}

static void one_instruction_is_one_line(void **state)
{
	static const uint8_t call[] = { 0xe8, 0xfb, 0x0f, 0, 0, 0x90 };
	char text[64];

	assert_int_equal(kymo_disassemble(call, sizeof(call), 0x1000, text, sizeof(text)), 5);
	assert_string_equal(text, "call 0x0000000000002000");
	assert_int_equal(kymo_disassemble(call, 4, 0x1000, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "(bad)");
	assert_int_equal(kymo_disassemble((const uint8_t *)"\x06", 1, 0, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "(bad)");
	assert_int_equal(kymo_disassemble(call, 0, 0, text, 3), -EINVAL);
	assert_string_equal(text, "");
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void a_jump_reaches_two_gigabytes(void **state)
{
	uint8_t bytes[KYMO_JUMP_SIZE] = { 0 };

	assert_int_equal(kymo_encode_jump(0x1000, 0x1000, bytes), 0);
	assert_memory_equal(bytes, "\xe9\xfb\xff\xff\xff", 5);
	assert_int_equal(kymo_encode_jump(0x1000, 0x1005 + 0x7fffffffu, bytes), 0);
	assert_memory_equal(bytes, "\xe9\xff\xff\xff\x7f", 5);
	assert_int_equal(kymo_encode_jump(0x1000, 0x1005 + 0x80000000u, bytes), -ERANGE);
	assert_memory_equal(bytes, "\xe9\xff\xff\xff\x7f", 5);
	assert_int_equal(kymo_encode_jump(0x100000000, 0x100000005 - 0x80000000u, bytes), 0);
	assert_int_equal(kymo_encode_jump(0x100000000, 0x100000004 - 0x80000000u, bytes), -ERANGE);
}

static struct kymo_plan plan_of(const void *bytes, uint8_t window, uint8_t second)
{
	struct kymo_plan plan = { .tactic = KYMO_TACTIC_GROUP, .vaddr = 0x1000, .window = window, .n_insns = 1 };

	plan.insn_offset[1] = window;
	if (second) {
		plan.n_insns = 2;
		plan.insn_offset[1] = second;
		plan.insn_offset[2] = window;
	}
	memcpy(plan.original, bytes, window);
	return plan;
}

static int relocate(const struct kymo_plan *plan, uint64_t to, size_t size)
{
	uint16_t at[KYMO_WINDOW_MAX_INSNS + 1];
	uint8_t bytes[KYMO_RELOCATED_MAX];

	assert_true(size <= sizeof(bytes));
	return kymo_relocate(plan, 0x100000000, to, bytes, size, at);
}

static void code_is_displaced_only_as_far_as_its_operands_reach(void **state)
{
	struct kymo_plan lea = plan_of("\x48\x8d\x05\xf0\xff\xff\x7f", 7, 0); /* lea 0x7ffffff0(%rip) */
	struct kymo_plan nop = plan_of("\x0f\x1f\x44\0\0", 5, 0);

	assert_int_equal(relocate(&lea, 0x100000100, KYMO_RELOCATED_MAX), 12);
	assert_int_equal(relocate(&lea, 0xfffff000, KYMO_RELOCATED_MAX), -ERANGE);
	assert_int_equal(relocate(&nop, 0x170000000, KYMO_RELOCATED_MAX), 10);
	assert_int_equal(relocate(&nop, 0x190000000, KYMO_RELOCATED_MAX), -ERANGE);
	assert_int_equal(relocate(&nop, 0x170000000, 9), -ENOSPC);
	assert_int_equal(relocate(&nop, 0x170000000, 0), -ENOSPC);
}

static void one_instruction_is_displaced_however_short_it_is(void **state)
{
	struct kymo_plan push = plan_of("\x53", 1, 0), ret = plan_of("\xc3", 1, 0);
	struct kymo_plan syscall = plan_of("\x0f\x05", 2, 0), trap = plan_of("\xcc", 1, 0);

	assert_int_equal(relocate(&push, 0x100001000, KYMO_RELOCATED_MAX), 6);
	assert_int_equal(relocate(&ret, 0x100001000, KYMO_RELOCATED_MAX), 1);
	assert_int_equal(relocate(&syscall, 0x100001000, KYMO_RELOCATED_MAX), 7);
	assert_int_equal(relocate(&trap, 0x100001000, KYMO_RELOCATED_MAX), -ENOTSUP);
}

static void a_plan_that_nobody_made_is_refused(void **state)
{
	struct kymo_plan syscall = plan_of("\x0f\x05\x90\x90\x90", 5, 2);
	struct kymo_plan inward = plan_of("\x31\xc0\x75\xfd\x90", 5, 2); /* xor; jne to its second byte */
	struct kymo_plan uneven = plan_of("\x31\xc0\x31\xc0\x31\xc0", 6, 3);
	struct kymo_plan empty = { 0 }, wide = plan_of("\x31\xc0\x31\xc0\x90", 5, 2);

	uneven.n_insns = 1;
	assert_int_equal(relocate(&uneven, 0x100001000, KYMO_RELOCATED_MAX), -EINVAL);
	assert_int_equal(relocate(&empty, 0x100001000, KYMO_RELOCATED_MAX), -EINVAL);
	wide.window = KYMO_WINDOW_MAX + 1;
	assert_int_equal(relocate(&wide, 0x100001000, KYMO_RELOCATED_MAX), -EINVAL);
	wide.n_insns = KYMO_WINDOW_MAX_INSNS + 1;
	assert_int_equal(relocate(&wide, 0x100001000, KYMO_RELOCATED_MAX), -EINVAL);
	syscall.insn_offset[2] = 3;
	syscall.n_insns = 4;
	syscall.insn_offset[3] = 4;
	syscall.insn_offset[4] = 5;
	assert_int_equal(relocate(&syscall, 0x100001000, KYMO_RELOCATED_MAX), -ENOTSUP);
	inward.n_insns = 3;
	inward.insn_offset[2] = 4;
	inward.insn_offset[3] = 5;
	assert_int_equal(relocate(&inward, 0x100001000, KYMO_RELOCATED_MAX), -ENOTSUP);
}

static void sections_that_overlap_and_functions_out_of_order_are_refused(void **state)
{
	static const uint8_t bytes[64];
	struct kymo_span text[] = { { 0x1000, bytes, 64 }, { 0x103f, bytes, 64 } };
	struct kymo_span wrapping = { UINT64_MAX - 3, bytes, 64 };
	struct kymo_extent functions[] = { { 0x1010, 0x1020 }, { 0x1000, 0x1008 } }, empty = { 0x1000, 0x1000 };
	struct kymo_module_code code = { .text = text, .n_text = 2 };
	struct kymo_entry_map *map = NULL;

	assert_int_equal(kymo_entry_map_create(&code, &map), -EINVAL);
	code.n_text = 1;
	code.functions = functions;
	code.n_functions = 2;
	assert_int_equal(kymo_entry_map_create(&code, &map), -EINVAL);
	code.functions = &empty;
	code.n_functions = 1;
	assert_int_equal(kymo_entry_map_create(&code, &map), -EINVAL);
	code.n_functions = 0;
	code.data = &wrapping;
	code.n_data = 1;
	assert_int_equal(kymo_entry_map_create(&code, &map), -EINVAL);
	assert_null(map);
	kymo_entry_map_destroy(map);
}

static void a_module_without_anything_has_entries_everywhere(void **state)
{
	struct kymo_module_code code = { 0 };
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_entry_map *map;
	struct kymo_plan plans[KYMO_PLANS_MAX];
	size_t n, n_plans;

	assert_int_equal(kymo_entry_map_create(&code, &map), 0);
	assert_true(kymo_entry_map_has(map, 0));
	assert_true(kymo_entry_map_has(map, UINT64_MAX));
	assert_int_equal(kymo_plan(&code, map, NULL, 0x1000, plans, &n_plans, refusals, &n), -EPERM);
	assert_int_equal(n, 1);
	assert_int_equal(kymo_plan(&code, map, NULL, 0x1000, plans, &n_plans, NULL, NULL), -EPERM);
	kymo_entry_map_destroy(map);
}

static void tables_that_overlap_without_end_are_refused(void **state)
{
	enum { TEXT = 70000, DATA = 400000 };
	uint8_t *text = calloc(1, TEXT), *data = calloc(1, DATA);
	struct kymo_span text_span = { 0x1000, text, TEXT }, data_span = { 0x20000, data, DATA };
	struct kymo_extent function = { 0x1000, 0x1000 + TEXT };
	struct kymo_module_code code = {
		.text = &text_span,
		.n_text = 1,
		.data = &data_span,
		.n_data = 1,
		.functions = &function,
		.n_functions = 1,
		.position_independent = true,
	};
	struct kymo_entry_map *map = NULL;

	/* Ten thousand addresses taken, each that of a hundred thousand entries. */
	assert_true(text && data);
	for (uint32_t i = 0; i + 7 <= TEXT; i += 7) {
		uint32_t distance = 0x20000 + i / 7 * 4 - (0x1000 + i + 7);

		memcpy(text + i, "\x48\x8d\x05", 3);
		memcpy(text + i + 3, &distance, 4);
	}
	for (uint32_t i = 0; i < DATA; i += 4) {
		int32_t entry = -0x1f000 + 0x4000;

		memcpy(data + i, &entry, 4);
	}
	assert_int_equal(kymo_entry_map_create(&code, &map), -EFBIG);
	assert_null(map);
	free(text);
	free(data);
}

/* ---- real code ------------------------------------------------------------------------------- */

struct tally {
	char reason[160];
	size_t n;
};

/* The sentence without its numbers. */
static void generalise(char *text)
{
	char *out = text;

	while (*text) {
		if (!strncmp(text, "0x", 2)) {
			text += 2 + strspn(text + 2, "0123456789abcdef");
			*out++ = '@';
		} else if (*text >= '0' && *text <= '9') {
			text += strspn(text, "0123456789");
			*out++ = '#';
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

static void count(struct tally tallies[64], const struct kymo_refusal *refusal)
{
	char reason[sizeof(refusal->reason)];

	memcpy(reason, refusal->reason, sizeof(reason));
	generalise(reason);
	for (size_t i = 0; i < 64; i++) {
		if (!tallies[i].n)
			memcpy(tallies[i].reason, reason, sizeof(reason));
		if (!strcmp(tallies[i].reason, reason)) {
			tallies[i].n++;
			return;
		}
	}
}

static void nine_of_ten_functions_can_be_probed(void **state)
{
	size_t planned[KYMO_N_TACTICS] = { 0 };
	struct tally tallies[64] = { 0 };
	struct kymo_entry_map *map;
	struct loaded module;
	size_t total, n;

	if (!load(*state, &module)) {
		print_message("skipped: cannot read %s\n", (const char *)*state);
		skip();
	}
	assert_int_equal(kymo_entry_map_create(&module.code, &map), 0);
	n = module.code.n_functions;
	for (size_t i = 0; i < n; i++) {
		struct kymo_refusal refusals[KYMO_N_TACTICS];
		struct kymo_plan plans[KYMO_PLANS_MAX] = { { .tactic = KYMO_TACTIC_NONE } };
		size_t n_refusals, n_plans;

		if (kymo_plan(&module.code, map, NULL, module.code.functions[i].start, plans, &n_plans, refusals,
			      &n_refusals))
			count(tallies, &refusals[n_refusals - 1]);
		planned[plans[0].tactic]++;
	}
	total = planned[KYMO_TACTIC_JUMP] + planned[KYMO_TACTIC_GROUP];
	print_message("%s: %zu of %zu functions (%.1f %%), %zu by jump, %zu by group\n", (const char *)*state, total, n,
		      100.0 * (double)total / (double)n, planned[KYMO_TACTIC_JUMP], planned[KYMO_TACTIC_GROUP]);
	for (size_t i = 0; i < 64 && tallies[i].n; i++)
		print_message("  %5zu %s\n", tallies[i].n, tallies[i].reason);
	assert_true(total >= n * 9 / 10);
	kymo_entry_map_destroy(map);
	unload(&module);
}

/* The instructions of a function, by their lengths. Returns their number. The PLT has a record as if it were one,
 * and is none: its parts are entered through relocations that need not be there. */
static size_t find_instructions(const struct kymo_module_code *code, const struct kymo_extent *function, uint64_t *ret,
				size_t max)
{
	const struct kymo_span *span = code->text;
	size_t n = 0;
	char text[128];

	while (function->start < span->vaddr || function->start >= span->vaddr + span->size)
		span++;
	if (!memcmp(span->bytes + (function->start - span->vaddr), "\xff\x35", 2))
		return 0;
	for (uint64_t at = function->start; at < function->end && n < max;) {
		size_t offset = (size_t)(at - span->vaddr);
		int length = kymo_disassemble(span->bytes + offset, span->size - offset, at, text, sizeof(text));

		ret[n++] = at;
		at += length > 0 ? (uint64_t)length : 1;
	}
	return n;
}

static void of_a_thousand_instructions_one_cannot_be_probed(void **state)
{
	size_t planned[KYMO_N_TACTICS] = { 0 }, n = 0;
	struct tally tallies[64] = { 0 };
	struct kymo_entry_map *map;
	struct loaded module;
	uint64_t sites[4000];
	struct room room;

	if (!load(*state, &module)) {
		print_message("skipped: cannot read %s\n", (const char *)*state);
		skip();
	}
	assert_int_equal(kymo_entry_map_create(&module.code, &map), 0);
	room_init(&room, &module.code);
	room_free_around(&room);
	for (uint64_t seed = 0; n < 50000; seed++) {
		size_t n_sites = find_instructions(
			&module.code, &module.code.functions[mix(seed) % module.code.n_functions], sites, 4000);

		for (size_t i = 0; i < n_sites; i++, n++) {
			struct kymo_plan plans[KYMO_PLANS_MAX] = { { .tactic = KYMO_TACTIC_NONE } };
			struct kymo_refusal refusals[KYMO_N_TACTICS];
			size_t n_refusals, n_plans;

			room.n_taken = 0;
			if (kymo_plan(&module.code, map, &room.ops, sites[i], plans, &n_plans, refusals, &n_refusals))
				count(tallies, &refusals[n_refusals - 1]);
			planned[plans[0].tactic]++;
		}
	}
	for (int tactic = 0; tactic < KYMO_N_TACTICS; tactic++)
		print_message("%s: %.3f %% %s\n", (const char *)*state, 100.0 * (double)planned[tactic] / (double)n,
			      kymo_tactic_name((enum kymo_tactic)tactic));
	for (size_t i = 0; i < 64 && tallies[i].n; i++)
		print_message("  %5zu %s\n", tallies[i].n, tallies[i].reason);
	assert_true(planned[KYMO_TACTIC_NONE] <= n / 1000);
	room_deinit(&room);
	kymo_entry_map_destroy(map);
	unload(&module);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define MANY 6000

struct many {
	struct room room;
	struct kymo_plan plans[2 * MANY];
	size_t n_plans, planned[KYMO_N_TACTICS];
};

/* Where the jump of plan `i` should lead; plain ones lead where room_put() lets them. */
static void check_leads(const struct many *many, size_t i)
{
	const struct kymo_plan *plan = &many->plans[i];

	if (plan->trampoline) {
		assert_int_equal(room_follow(&many->room, plan->vaddr), plan->trampoline);
		assert_true(room_has_taken(&many->room, plan->trampoline, KYMO_JUMP_SIZE));
	} else {
		assert_int_equal(room_follow(&many->room, plan->vaddr), room_plain_target(plan->vaddr));
	}
}

static void plan_one(struct many *many, const struct loaded *module, const struct kymo_entry_map *map, uint64_t vaddr)
{
	struct kymo_plan *plans = &many->plans[many->n_plans];
	size_t n = 0;

	many->room.site = kymo_site_of(map, vaddr);
	if (kymo_plan(&module->code, map, &many->room.ops, vaddr, plans, &n, NULL, NULL)) {
		many->planned[KYMO_TACTIC_NONE]++;
		return;
	}
	many->planned[plans[0].tactic]++;
	assert_int_equal(plans[n - 1].vaddr, many->room.site);
	for (size_t i = 0; i < n; i++) {
		assert_true((plans[i].vaddr & 4095) + plans[i].patch_size <= 4096);
		assert_true(plans[i].is_evicted == (i + 1 < n));
		room_put(&many->room, &plans[i]);
		check_leads(many, many->n_plans++);
	}
}

static int compare_down(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? 1 : left > right ? -1 : 0;
}

static void thousands_of_probes_do_not_disturb_each_other(void **state)
{
	static struct many many;
	static uint64_t sites[MANY], instructions[4000];
	struct kymo_entry_map *map;
	struct loaded module;
	size_t n = 0;

	if (!load(*state, &module)) {
		print_message("skipped: cannot read %s\n", (const char *)*state);
		skip();
	}
	memset(&many, 0, sizeof(many));
	assert_int_equal(kymo_entry_map_create(&module.code, &map), 0);
	room_init(&many.room, &module.code);
	room_free_around(&many.room);
	/* Runs of instructions, and single ones. */
	for (uint64_t seed = 1; n < MANY; seed++) {
		const struct kymo_extent *function = &module.code.functions[mix(seed) % module.code.n_functions];
		size_t all = find_instructions(&module.code, function, instructions, 4000);
		size_t i = all ? mix(seed + 1) % all : 0;

		for (size_t end = i + 1 + (mix(seed + 2) & 15); i < all && i < end && n < MANY; i++) {
			sites[n] = instructions[i];
			room_want(&many.room, kymo_site_of(map, sites[n++]));
		}
	}
	qsort(sites, n, sizeof(*sites), compare_down);
	for (size_t i = 0; i < n; i++) {
		if (!i || sites[i] != sites[i - 1])
			plan_one(&many, &module, map, sites[i]);
	}
	for (int tactic = 0; tactic < KYMO_N_TACTICS; tactic++)
		print_message("%s: %zu %s\n", (const char *)*state, many.planned[tactic],
			      kymo_tactic_name((enum kymo_tactic)tactic));
	/* What was right when it was written is right still; and while they are taken out, last first, what stays
	 * stays right. */
	for (size_t i = 0; i < many.n_plans; i++)
		check_leads(&many, i);
	for (size_t i = many.n_plans; i-- > 0;) {
		check_leads(&many, i);
		room_take_out(&many.room, &many.plans[i]);
	}
	for (size_t i = 0; i < module.code.n_text; i++)
		assert_memory_equal(many.room.now + (module.code.text[i].vaddr - many.room.low),
				    module.code.text[i].bytes, module.code.text[i].size);
	room_deinit(&many.room);
	kymo_entry_map_destroy(map);
	unload(&module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_have_the_kernels_names_and_the_processors),
		cmocka_unit_test(other_words_are_no_registers),
		cmocka_unit_test(tactics_have_names),
		cmocka_unit_test(one_instruction_is_one_line),
		cmocka_unit_test(a_jump_reaches_two_gigabytes),
		cmocka_unit_test(code_is_displaced_only_as_far_as_its_operands_reach),
		cmocka_unit_test(one_instruction_is_displaced_however_short_it_is),
		cmocka_unit_test(a_plan_that_nobody_made_is_refused),
		cmocka_unit_test(sections_that_overlap_and_functions_out_of_order_are_refused),
		cmocka_unit_test(a_module_without_anything_has_entries_everywhere),
		cmocka_unit_test(tables_that_overlap_without_end_are_refused),
		{ "nine_of_ten_functions_of_libc_can_be_probed", nine_of_ten_functions_can_be_probed, NULL, NULL,
		  "/lib/x86_64-linux-gnu/libc.so.6" },
		{ "nine_of_ten_functions_of_bash_can_be_probed", nine_of_ten_functions_can_be_probed, NULL, NULL,
		  "/bin/bash" },
		{ "of_a_thousand_instructions_of_libc_one_cannot_be_probed",
		  of_a_thousand_instructions_one_cannot_be_probed, NULL, NULL, "/lib/x86_64-linux-gnu/libc.so.6" },
		{ "of_a_thousand_instructions_of_bash_one_cannot_be_probed",
		  of_a_thousand_instructions_one_cannot_be_probed, NULL, NULL, "/bin/bash" },
		{ "thousands_of_probes_in_libc_do_not_disturb_each_other",
		  thousands_of_probes_do_not_disturb_each_other, NULL, NULL, "/lib/x86_64-linux-gnu/libc.so.6" },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
