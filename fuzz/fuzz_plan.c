/*
 * Random bytes as a module: a header of our own splits them into text, data, functions, entries and a restartable
 * sequence. Plans at each address, displaces what is planned, and checks what a plan promises.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"

#define TEXT UINT64_C(0x10f00)
#define DATA UINT64_C(0x14000)
#define FUNCTIONS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_moved(const struct kymo_plan *plan)
{
	uint64_t from = UINT64_C(0x7f0000000000) + plan->vaddr, to = from + 0x12345678;
	uint16_t at[KYMO_WINDOW_MAX_INSNS + 1];
	uint8_t bytes[KYMO_RELOCATED_MAX + 1];
	char text[96];
	int moved;

	bytes[KYMO_RELOCATED_MAX] = 0xa5;
	moved = kymo_relocate(plan, from, to, bytes, KYMO_RELOCATED_MAX, at);
	require(bytes[KYMO_RELOCATED_MAX] == 0xa5);
	/* A planned window may hold targets out of reach, nothing else. */
	require(moved > 0 || moved == -ERANGE);
	if (moved < 0)
		return;
	require(moved <= KYMO_RELOCATED_MAX && at[0] == 0 && at[plan->n_insns] <= moved);
	for (int i = 0; i < plan->n_insns; i++)
		require(at[i] < at[i + 1]);
	for (int done = 0; done < moved;) {
		int length =
			kymo_disassemble(bytes + done, (size_t)(moved - done), to + (uint64_t)done, text, sizeof(text));

		require(length > 0);
		done += length;
	}
	require(kymo_relocate(plan, from, to, bytes, (size_t)moved - 1, at) == -ENOSPC);
}

/* Where the instruction behind the endbr64 at `vaddr` begins (it may have prefixes), or 0 if there is none. */
static uint64_t behind_endbr(const struct kymo_span *text, uint64_t vaddr)
{
	uint64_t at = vaddr - text->vaddr;
	char name[100];
	int length = kymo_disassemble(text->bytes + at, text->size - at, vaddr, name, sizeof(name));

	return length > 0 && strstr(name, "endbr64") ? vaddr + (uint64_t)length : 0;
}

static void check_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		       const struct kymo_plan *plan, uint64_t vaddr)
{
	const struct kymo_span *text = &code->text[0];
	uint64_t start = plan->vaddr, end = start + plan->window;
	bool inside = false;

	require(plan->window >= KYMO_PATCH_SIZE && plan->window <= KYMO_WINDOW_MAX);
	require(plan->n_insns >= 1 && plan->n_insns <= KYMO_WINDOW_MAX_INSNS);
	require(plan->insn_offset[0] == 0 && plan->insn_offset[plan->n_insns] == plan->window);
	require(plan->tactic == KYMO_TACTIC_JUMP ? plan->n_insns == 1 : plan->n_insns > 1);
	require(start == vaddr || start == behind_endbr(text, vaddr));
	require((start & 4095) + KYMO_PATCH_SIZE <= 4096);
	require(!memcmp(plan->original, text->bytes + (start - text->vaddr), plan->window));
	for (uint64_t at = start + 1; at < end; at++)
		require(!kymo_entry_map_has(map, at));
	for (size_t i = 0; i < code->n_functions; i++)
		inside |= code->functions[i].start <= vaddr && end <= code->functions[i].end;
	require(inside);
	for (size_t i = 0; i < code->n_rseq; i++)
		require(end <= code->rseq[i].start || start >= code->rseq[i].end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_extent functions[FUNCTIONS_MAX], rseq;
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
		.rseq = &rseq,
		.n_rseq = 1,
	};
	struct kymo_entry_map *map;
	uint64_t at = TEXT;

	if (size < 16)
		return 0;
	code.position_independent = data[0] & 1;
	entries[0] = TEXT + data[1];
	entries[1] = TEXT + data[2] * 4u;
	rseq = (struct kymo_extent){ TEXT + data[3] * 16u, TEXT + data[3] * 16u + (data[4] & 15) };
	/* Extents of eight lengths, the last one shorter than what is left or much longer. */
	for (unsigned int i = 0; i < FUNCTIONS_MAX; i++) {
		if (!data[5 + i])
			continue;
		functions[code.n_functions++] = (struct kymo_extent){ at, at + data[5 + i] };
		at += data[5 + i] + (data[0] >> 1 & 3);
	}
	size -= 13;
	text = (struct kymo_span){ TEXT, data + 13, size - size / 4 };
	constants = (struct kymo_span){ DATA, data + 13 + text.size, size / 4 };
	if (text.size > DATA - TEXT)
		return 0;
	if (kymo_entry_map_create(&code, &map))
		return 0;
	for (at = TEXT - 1; at <= TEXT + text.size; at++) {
		struct kymo_refusal refusals[KYMO_N_TACTICS];
		struct kymo_plan plan;
		size_t n = 99;
		int err = kymo_plan(&code, map, at, &plan, refusals, &n);

		require(n <= KYMO_N_TACTICS && (!err || (err == -EPERM && n)));
		for (size_t i = 0; i < n; i++)
			require(refusals[i].reason[0] && memchr(refusals[i].reason, '\0', sizeof(refusals[i].reason)));
		if (err)
			continue;
		check_plan(&code, map, &plan, at);
		check_moved(&plan);
	}
	kymo_entry_map_destroy(map);
	return 0;
}
