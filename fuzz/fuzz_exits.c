/*
 * Random bytes as a module, split as in fuzz_plan.c: the exits of each function, of two of them as parts of one, and
 * its instructions, with what their contracts promise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/code.h"
#include "arch/exits.h"
#include "arch/plan.h"

#define TEXT UINT64_C(0x10f00)
#define DATA UINT64_C(0x14000)
#define FUNCTIONS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_in(uint64_t vaddr, const struct kymo_extent *extents, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (vaddr >= extents[i].start && vaddr < extents[i].end)
			return true;
	return false;
}

static void check_exits(const struct kymo_module_code *code, const struct kymo_entry_map *map,
			const struct kymo_extent *parts, size_t n_parts)
{
	struct kymo_refusal refusal = { 0 };
	struct kymo_exit *exits = NULL;
	size_t n = 99;
	int err = kymo_exits_create(code, map, parts, n_parts, &exits, &n, &refusal);

	if (err) {
		require(err == -EPERM && !exits && n == 99 && refusal.tactic == KYMO_TACTIC_NONE);
		require(refusal.reason[0] && memchr(refusal.reason, '\0', sizeof(refusal.reason)));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct kymo_span *text = &code->text[0];
		char line[100];

		require(!i || exits[i].vaddr > exits[i - 1].vaddr);
		require(is_in(exits[i].vaddr, code->functions, code->n_functions));
		require(exits[i].is_tail || !exits[i].target);
		require(kymo_disassemble(text->bytes + (exits[i].vaddr - text->vaddr),
					 text->size - (exits[i].vaddr - text->vaddr), exits[i].vaddr, line,
					 sizeof(line)) > 0);
		require(strstr(line, exits[i].is_tail ? "jmp" : "ret"));
	}
	free(exits);
}

static void check_instructions(const struct kymo_entry_map *map, const struct kymo_span *text, uint64_t low,
			       uint64_t high)
{
	uint64_t *list = NULL;
	size_t n = 99;
	int err = kymo_instructions_create(map, low, high, &list, &n);

	require(err ? err == -EPERM && !list && n == 99 : n <= high - low);
	for (size_t i = 0; !err && i < n; i++)
		require(list[i] >= low && list[i] < high && list[i] - text->vaddr < text->size &&
			(!i || list[i] > list[i - 1]));
	free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_extent functions[FUNCTIONS_MAX];
	uint64_t entries[2];
	struct kymo_span text, constants;
	struct kymo_module_code code = {
		.text = &text,
		.n_text = 1,
		.data = &constants,
		.n_data = 1,
		.functions = functions,
		.entries = entries,
		.n_entries = 2,
	};
	struct kymo_entry_map *map;
	uint64_t at = TEXT;

	if (size < 16)
		return 0;
	code.position_independent = data[0] & 1;
	entries[0] = TEXT + data[1];
	entries[1] = TEXT + data[2] * 4u;
	if (entries[0] > entries[1])
		entries[1] = entries[0];
	for (unsigned int i = 0; i < FUNCTIONS_MAX; i++) {
		if (!data[5 + i])
			continue;
		functions[code.n_functions++] = (struct kymo_extent){ at, at + data[5 + i] };
		at += data[5 + i] + (data[0] >> 1 & 3);
	}
	size -= 13;
	text = (struct kymo_span){ TEXT, data + 13, size - size / 4 };
	constants = (struct kymo_span){ DATA, data + 13 + text.size, size / 4 };
	if (text.size > DATA - TEXT || kymo_entry_map_create(&code, &map))
		return 0;
	for (size_t i = 0; i < code.n_functions; i++) {
		struct kymo_extent parts[] = { functions[i], functions[data[3] % code.n_functions] };

		check_exits(&code, map, parts, 1);
		check_exits(&code, map, parts, 2);
		check_instructions(map, &text, parts[0].start, parts[0].end);
	}
	check_instructions(map, &text, TEXT + data[3], UINT64_MAX);
	kymo_entry_map_destroy(map);
	return 0;
}
