/*
 * Random bytes as a module: a header of our own splits them into text, data, functions, entries and a restartable
 * sequence. Plans at each address: alone without a room, and in one with earlier plans. Displaces what is planned, and
 * checks what a plan promises.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/code.h"
#include "arch/plan.h"

#define TEXT UINT64_C(0x10f00)
#define DATA UINT64_C(0x14000)
#define FUNCTIONS_MAX 8
#define TEXT_MAX (DATA - TEXT)
#define TAKEN_MAX 16384

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

/* Where the instruction after the endbr64 at `vaddr` begins (it may have prefixes), or 0 if there is none. */
static uint64_t behind_endbr(const struct kymo_span *text, uint64_t vaddr)
{
	uint64_t at = vaddr - text->vaddr;
	char name[100];
	int length = kymo_disassemble(text->bytes + at, text->size - at, vaddr, name, sizeof(name));

	return length > 0 && strstr(name, "endbr64") ? vaddr + (uint64_t)length : 0;
}

/* ---- a room ---------------------------------------------------------------------------------- */

enum { LOCKED = 1, UNSTEADY = 2, CHANGED = 4 };

struct room {
	struct kymo_plan_room ops;
	const struct kymo_span *text;
	uint8_t now[TEXT_MAX], flags[TEXT_MAX];
	int64_t low[2], high[2]; /* free */
	int64_t taken[TAKEN_MAX];
	size_t n_taken;
	struct kymo_plan plans[TAKEN_MAX];
	size_t n_plans;
};

static bool has_flag(const struct room *room, uint64_t vaddr, size_t size, uint8_t flag)
{
	for (uint64_t at = vaddr - TEXT; size--; at++) {
		if (at < room->text->size && (room->flags[at] & flag))
			return true;
	}
	return false;
}

static void look(void *data, uint64_t vaddr, uint8_t *bytes, size_t size)
{
	struct room *room = data;

	require(vaddr >= TEXT && vaddr - TEXT + size <= room->text->size);
	for (size_t i = 0; i < size; i++) {
		require(bytes[i] == room->text->bytes[vaddr - TEXT + i]);
		if (has_flag(room, vaddr + i, 1, CHANGED))
			bytes[i] = room->now[vaddr - TEXT + i];
	}
}

static bool is_locked(void *data, uint64_t vaddr, size_t size)
{
	return has_flag(data, vaddr, size, LOCKED);
}

static bool is_unsteady(void *data, uint64_t vaddr, size_t size)
{
	return has_flag(data, vaddr, size, UNSTEADY);
}

static uint64_t reserve(void *data, uint64_t low, uint64_t high, size_t size)
{
	struct room *room = data;

	require(high - low <= UINT32_MAX && size == KYMO_JUMP_SIZE);
	for (int i = 0; i < 2; i++) {
		int64_t at = (int64_t)low > room->low[i] ? (int64_t)low : room->low[i];

		for (size_t k = 0; k < room->n_taken; k++) {
			if (at < room->taken[k] + (int64_t)size && room->taken[k] < at + (int64_t)size) {
				at = room->taken[k] + (int64_t)size;
				k = (size_t)-1;
			}
		}
		if (at <= (int64_t)high && at <= room->high[i] && room->n_taken < TAKEN_MAX)
			return (uint64_t)(room->taken[room->n_taken++] = at);
	}
	return 0;
}

static void release(void *data, uint64_t vaddr, size_t size)
{
	struct room *room = data;

	for (size_t i = 0; i < room->n_taken; i++) {
		if (room->taken[i] == (int64_t)vaddr) {
			room->taken[i] = room->taken[--room->n_taken];
			return;
		}
	}
	abort();
}

static bool is_taken(const struct room *room, uint64_t vaddr)
{
	for (size_t i = 0; i < room->n_taken; i++) {
		if (room->taken[i] == (int64_t)vaddr)
			return true;
	}
	return false;
}

static void room_init(struct room *room, const struct kymo_span *text, uint8_t shape, uint8_t salt)
{
	room->ops = (struct kymo_plan_room){
		.data = room,
		.look = look,
		.is_locked = is_locked,
		.is_unsteady = is_unsteady,
		.reserve = reserve,
		.release = release,
	};
	room->text = text;
	room->n_taken = room->n_plans = 0;
	memcpy(room->now, text->bytes, text->size);
	memset(room->flags, 0, text->size);
	for (size_t i = 0; i < text->size; i++) {
		uint32_t random = (uint32_t)(i + salt) * 2654435761u;

		if (shape & 1 && random % 61 == 0)
			room->flags[i] |= LOCKED;
		if (shape & 2 && random % 53 == 0)
			room->flags[i] |= UNSTEADY;
	}
	/* Far and wide, or little. */
	room->low[0] = shape & 4 ? ((int64_t)salt << 24) + 1 : INT64_C(-0x70000000);
	room->high[0] = shape & 4 ? room->low[0] + 0xfffff : -0x10000;
	room->low[1] = 0x100000;
	room->high[1] = shape & 8 ? 0x100000 + salt : 0x7fff0000;
}

/* Where control goes from `vaddr` in the text as it is. The bytes that decide are given to `relied`. */
static uint64_t follow(const struct room *room, uint64_t vaddr, bool relied[TEXT_MAX])
{
	size_t at = (size_t)(vaddr - TEXT), size = room->text->size;
	int32_t distance;

	if (room->now[at] == 0xeb) {
		require(at + 2 <= size);
		relied[at + 1] = true;
		at += 2 + (size_t)(int8_t)room->now[at + 1];
		require(at < size);
	}
	for (unsigned int i = 0; i < 15 && at < size && room->now[at] != 0xe9; i++, at++)
		require(strchr("\x26\x2e\x36\x3e\x64\x65", room->now[at]) || (room->now[at] & 0xf0) == 0x40);
	require(at + KYMO_JUMP_SIZE <= size);
	memset(relied + at + 1, true, 4);
	memcpy(&distance, room->now + at + 1, sizeof(distance));
	return TEXT + at + KYMO_JUMP_SIZE + (uint64_t)(int64_t)distance;
}

static void check_leads(const struct room *room, const struct kymo_plan *plan)
{
	static bool relied[TEXT_MAX];

	memset(relied, 0, sizeof(relied));
	if (!plan->trampoline)
		return;
	require(follow(room, plan->vaddr, relied) == plan->trampoline && is_taken(room, plan->trampoline));
	for (size_t i = 0; i < room->text->size; i++)
		require(!relied[i] || !(room->flags[i] & UNSTEADY) || (room->flags[i] & CHANGED));
}

static void put(struct room *room, const struct kymo_plan *plan)
{
	size_t at = (size_t)(plan->vaddr - TEXT);
	uint8_t plain[KYMO_JUMP_SIZE] = { 0xe9, 1, 2, 3, 4 };

	require(!has_flag(room, plan->vaddr, plan->patch_size, LOCKED));
	memcpy(room->now + at, plan->trampoline ? plan->patch : plain, plan->patch_size);
	for (size_t i = 0; i < plan->lock_size; i++)
		room->flags[at + i] |= i < plan->patch_size ? LOCKED | CHANGED : LOCKED;
	require(room->n_plans < TAKEN_MAX);
	room->plans[room->n_plans++] = *plan;
	check_leads(room, plan);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static bool is_pun(const struct kymo_plan *plan)
{
	return plan->tactic > KYMO_TACTIC_GROUP;
}

static void check_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		       const struct kymo_plan *plan)
{
	const struct kymo_span *text = &code->text[0];
	uint64_t start = plan->vaddr, end = start + plan->window, changed = start + plan->patch_size;
	unsigned int bytes = plan->window > plan->patch_size ? plan->window : plan->patch_size;
	bool inside = false;

	require(plan->window && plan->window <= KYMO_WINDOW_MAX);
	require(plan->patch_size && plan->patch_size <= KYMO_PATCH_MAX);
	require(plan->n_insns >= 1 && plan->n_insns <= KYMO_WINDOW_MAX_INSNS);
	require(plan->insn_offset[0] == 0 && plan->insn_offset[plan->n_insns] == plan->window);
	require(plan->lock_size >= bytes && start + plan->lock_size <= TEXT + text->size);
	require((start & 4095) + plan->patch_size <= 4096);
	require(!memcmp(plan->original, text->bytes + (start - text->vaddr), bytes));
	require(is_pun(plan) == (plan->trampoline != 0));
	if (is_pun(plan))
		require(plan->n_insns == 1 && changed <= end);
	else
		require(plan->patch_size == KYMO_JUMP_SIZE && (plan->window >= KYMO_JUMP_SIZE || plan->ends_flow));
	if (plan->tactic == KYMO_TACTIC_JUMP)
		require(plan->n_insns == 1 && plan->window >= KYMO_JUMP_SIZE);
	for (uint64_t at = start + 1; at < changed || (!is_pun(plan) && at < end); at++)
		require(!kymo_entry_map_has(map, at));
	for (size_t i = 0; i < code->n_functions; i++)
		inside |= code->functions[i].start <= start &&
			  (plan->tactic == KYMO_TACTIC_GROUP ? start : end - 1) < code->functions[i].end;
	require(inside);
	for (size_t i = 0; i < code->n_rseq; i++)
		require(end <= code->rseq[i].start || start >= code->rseq[i].end);
}

/* Plan at `vaddr`, in `room` or without one, and check it all. */
static void plan_at(const struct kymo_module_code *code, const struct kymo_entry_map *map, struct room *room,
		    uint64_t vaddr)
{
	size_t n = 99, n_plans = 0, n_taken = room ? room->n_taken : 0, expected = n_taken;
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	int err = kymo_plan(code, map, room ? &room->ops : NULL, vaddr, plans, &n_plans, refusals, &n);

	require(n <= KYMO_N_TACTICS && (!err || (err == -EPERM && n)));
	for (size_t i = 0; i < n; i++)
		require(refusals[i].reason[0] && memchr(refusals[i].reason, '\0', sizeof(refusals[i].reason)));
	require(err ? n_plans == 0 : n_plans >= 1 && n_plans <= KYMO_PLANS_MAX);
	if (!err)
		require(plans[n_plans - 1].vaddr == vaddr ||
			plans[n_plans - 1].vaddr == behind_endbr(&code->text[0], vaddr));
	for (size_t i = 0; i < n_plans; i++) {
		require(plans[i].is_evicted == (i + 1 < n_plans) && (room || !is_pun(&plans[i])));
		check_plan(code, map, &plans[i]);
		check_moved(&plans[i]);
		expected += is_pun(&plans[i]);
		if (room)
			put(room, &plans[i]);
	}
	require(!room || room->n_taken == expected);
}

/* All that were right when they were put in are right still, and while they are taken out, last first. */
static void take_out_all(struct room *room)
{
	for (size_t i = 0; i < room->n_plans; i++)
		check_leads(room, &room->plans[i]);
	while (room->n_plans--) {
		const struct kymo_plan *plan = &room->plans[room->n_plans];

		check_leads(room, plan);
		memcpy(room->now + (plan->vaddr - TEXT), plan->original, plan->patch_size);
	}
	require(!memcmp(room->now, room->text->bytes, room->text->size));
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
	static struct room room;
	struct kymo_entry_map *map;
	uint64_t at = TEXT;

	if (size < 16)
		return 0;
	code.position_independent = data[0] & 1;
	entries[0] = TEXT + data[1];
	entries[1] = TEXT + data[2] * 4u;
	if (entries[0] > entries[1])
		entries[1] = entries[0];
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
	if (text.size > TEXT_MAX)
		return 0;
	if (data[4] & 16) {
		code.small_stacks = (struct kymo_extent){ TEXT, TEXT + text.size * 3 / 4 };
		code.small_stacks_left = 800;
	}
	if (kymo_entry_map_create(&code, &map))
		return 0;
	for (at = TEXT - 1; at <= TEXT + text.size; at++)
		plan_at(&code, map, NULL, at);
	room_init(&room, &text, data[0] >> 4, data[4]);
	for (at = TEXT + text.size; at >= TEXT - 1; at--)
		plan_at(&code, map, &room, at);
	take_out_all(&room);
	kymo_entry_map_destroy(map);
	return 0;
}
