/*
 * Where threads come back into a clone from the function's own text.
 *
 * Control enters the function, other than by what is copied: at its start; where calls return to; at what its indirect
 * jumps lead to; at landing pads, and wherever else data has an address of it; and at what other functions jump to: the
 * entry map knows each direct branch of the module. Each of these gets a jump of five bytes,
 * or, where it has less room, a short one to an island near by. When all are in, what these bytes were is not executed
 * otherwise, as each branch to them is in the clone: so they need not be whole instructions, and branches to between
 * them do not matter. Until then the order matters in which they are written (clone_order.c). They may not reach the
 * next catch, or text that is read, or text that is executed in place, and lie in one page.
 *
 * A catch without that much room is left out if a few instructions without a branch follow it in the function's own
 * text. They must lead to another catch, or out of the function. These run in place then.
 */
#include "arch/x86_64/clone_catch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/clone_order.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/heights.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/relocate.h"
#include "arch/x86_64/site.h"
#include "base/page.h"
#include "base/search.h"

#define LANDING_SIZE 4u /* of an endbr64 */
#define RUN_MAX 24      /* instructions that run in place after a catch that was left out */

/* ---- all of them ----------------------------------------------------------------------------- */

struct finder {
	struct kymo_clone *clone;
	int err;
	bool is_loose;                                       /* an indirect jump was seen whose targets are not known */
	enum { NOT_LOOKED_AT, TABLES, NO_TABLES } addresses; /* that the function takes */
};

static void add_catch(struct finder *finder, uint64_t vaddr, enum kymo_catch_kind kind)
{
	struct kymo_catch one = { .vaddr = kymo_site_of(finder->clone->map, vaddr), .kind = kind };

	if (x86_clone_find(finder->clone, one.vaddr) >= 0 && !kymo_vec_push(&finder->clone->catches, one))
		finder->err = -ENOMEM;
}

static void add_target(void *closure, uint64_t target)
{
	struct finder *finder = closure;

	add_catch(finder, target, KYMO_CATCH_TARGET);
	if (!kymo_vec_push(&finder->clone->targets, target))
		finder->err = -ENOMEM;
}

/* Relative tables are read wherever the function takes an address. Whether these are all targets. */
static bool find_by_addresses(struct finder *finder, struct x86_body *body)
{
	const struct kymo_clone *clone = finder->clone;
	const size_t n_before = clone->targets.n;

	for (size_t i = 0; i < clone->insns.n; i++) {
		struct x86_insn insn;

		if (x86_body_decode(body, clone->insns.items[i].vaddr, &insn) < 0 ||
		    (x86_is_rip_lea(&insn) && !x86_body_relative(body, insn.rip, add_target, finder)))
			return false;
	}
	return clone->targets.n > n_before;
}

/* Whether the jump leads to nothing but `targets`, which then has all that it leads to. */
static bool find_targets(struct finder *finder, struct x86_body *body, const struct x86_clone_insn *insn)
{
	bool are_all;

	if (x86_body_targets(body, insn->vaddr, add_target, finder, &are_all))
		return are_all;
	finder->is_loose |= !x86_body_adds(body, insn->vaddr);
	if (finder->addresses == NOT_LOOKED_AT && !finder->is_loose)
		finder->addresses = find_by_addresses(finder, body) ? TABLES : NO_TABLES;
	finder->is_loose |= finder->addresses != TABLES;
	return !finder->is_loose;
}

static void find_by_flow(struct finder *finder, struct x86_body *body)
{
	struct kymo_clone *clone = finder->clone;

	for (size_t i = 0; i < clone->insns.n; i++) {
		struct x86_clone_insn *insn = &clone->insns.items[i];

		if (x86_flow_is_call((enum x86_flow)insn->flow) && insn->next >= 0)
			add_catch(finder, insn->vaddr + insn->length, KYMO_CATCH_RETURN);
		if (insn->stays_in && insn->flow == X86_FLOW_JUMP_INDIRECT)
			insn->is_tabled = find_targets(finder, body, insn);
	}
}

static void find_loose(struct finder *finder)
{
	struct kymo_clone *clone = finder->clone;

	for (size_t i = 0; i < clone->insns.n; i++) {
		uint64_t vaddr = clone->insns.items[i].vaddr;

		if (x86_test(clone->map, X86_FIRM, vaddr) || x86_test(clone->map, X86_LIKELY, vaddr))
			add_catch(finder, vaddr, KYMO_CATCH_TARGET);
	}
}

static int compare_catches(const void *a, const void *b)
{
	const struct kymo_catch *left = a, *right = b;

	if (left->vaddr != right->vaddr)
		return left->vaddr < right->vaddr ? -1 : 1;
	return (int)left->kind - (int)right->kind;
}

static void find_entries(struct finder *finder, const struct kymo_extent *part)
{
	const struct kymo_clone *clone = finder->clone;
	const uint64_t *entries;
	const size_t n = x86_entries_in(clone->code, part->start, part->end, &entries);

	for (size_t i = 0; i < n; i++)
		if (entries[i] != clone->parts[0].start)
			add_catch(finder, entries[i], KYMO_CATCH_LANDING);
}

/* Each has to be an instruction that is copied. */
static int find_shared(struct finder *finder, struct x86_body *body)
{
	const struct kymo_clone *clone = finder->clone;

	for (size_t i = 0; i < clone->n_parts; i++)
		for (uint64_t at = clone->parts[i].start; at < clone->parts[i].end; at++) {
			if (!x86_test(clone->map, X86_ENTERED, at))
				continue;
			if (x86_clone_find(clone, kymo_site_of(clone->map, at)) < 0)
				return x86_refuse(body->refusal, at,
						  "another function jumps to 0x%" PRIx64
						  ", which is no instruction that this one is known to execute",
						  at);
			add_catch(finder, at, KYMO_CATCH_JUMP);
		}
	return 0;
}

static int find_catches(struct kymo_clone *clone, struct x86_body *body)
{
	struct finder finder = { .clone = clone };
	size_t n = 0;

	add_catch(&finder, clone->parts[0].start, KYMO_CATCH_ENTRY);
	find_by_flow(&finder, body);
	if (finder.is_loose)
		find_loose(&finder);
	for (size_t i = 0; i < clone->n_parts; i++)
		find_entries(&finder, &clone->parts[i]);
	if (clone->is_shared && !finder.err)
		finder.err = find_shared(&finder, body);
	if (finder.err)
		return finder.err;
	qsort(clone->catches.items, clone->catches.n, sizeof(struct kymo_catch), compare_catches);
	for (size_t i = 0; i < clone->catches.n; i++)
		if (!n || clone->catches.items[i].vaddr != clone->catches.items[n - 1].vaddr)
			clone->catches.items[n++] = clone->catches.items[i];
	clone->catches.n = n;
	return 0;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* What each byte of a part is for, and of what fills the text after it. */
enum use {
	USE_FREE,
	USE_CALL,     /* of a call, which is executed in place if it can */
	USE_IN_PLACE, /* executed in place */
	USE_CATCH,    /* of a jump */
	USE_NOTHING   /* not to be written to */
};

#define FILLING 16u

struct room {
	struct kymo_clone *clone;
	struct kymo_refusal *refusal;
	uint8_t *uses[16]; /* by part */
	bool *dropped;     /* by catch */
	bool *is_short;
};

static void room_deinit(struct room *room)
{
	for (size_t i = 0; i < room->clone->n_parts; i++)
		free(room->uses[i]);
	free(room->dropped);
	free(room->is_short);
}

/* Outside of all parts: NULL. */
static uint8_t *use_at(const struct room *room, uint64_t vaddr)
{
	const struct kymo_extent *parts = room->clone->parts;

	for (size_t i = 0; i < room->clone->n_parts; i++)
		if (vaddr >= parts[i].start && vaddr < parts[i].end)
			return &room->uses[i][vaddr - parts[i].start];
	for (size_t i = 0; i < room->clone->n_parts; i++)
		if (vaddr >= parts[i].end && vaddr - parts[i].end < FILLING)
			return &room->uses[i][vaddr - parts[i].start];
	return NULL;
}

static void use(struct room *room, uint64_t vaddr, uint64_t size, enum use what)
{
	for (uint64_t i = 0; i < size; i++) {
		uint8_t *at = use_at(room, vaddr + i);

		if (at)
			*at = (uint8_t)what;
	}
}

/* Whether all bytes are free, or at the most of calls, and lie in one page: a longer write may be cut short between
 * two. */
static bool is_free(const struct room *room, uint64_t vaddr, uint64_t size, enum use most)
{
	if (!kymo_page_has(vaddr, size))
		return false;
	for (uint64_t i = 0; i < size; i++) {
		const uint8_t *at = use_at(room, vaddr + i);

		if (!at || *at > most)
			return false;
	}
	return true;
}

static void use_filling(struct room *room, size_t part)
{
	const struct kymo_clone *clone = room->clone;
	uint64_t end = clone->parts[part].end;
	bool is_over = false;

	for (uint64_t at = end; at < end + FILLING; at++) {
		is_over |= !x86_area_at(clone->map, at) || x86_function_at(clone->code, at) >= 0 ||
			   kymo_entry_map_has(clone->map, at);
		if (is_over)
			room->uses[part][at - clone->parts[part].start] = USE_NOTHING;
	}
}

/* What comes to a catch from outside may come by an endbr64 before it, which is executed in place. */
static void use_landings(struct room *room)
{
	const struct kymo_clone *clone = room->clone;

	for (size_t i = 0; i < clone->catches.n; i++) {
		const uint64_t vaddr = clone->catches.items[i].vaddr, landing = vaddr - LANDING_SIZE;

		if (use_at(room, landing) && kymo_site_of(clone->map, landing) == vaddr)
			use(room, landing, LANDING_SIZE, USE_IN_PLACE);
	}
}

static int room_init(struct room *room)
{
	struct kymo_clone *clone = room->clone;

	room->dropped = calloc(clone->catches.n + 1, sizeof(bool));
	room->is_short = calloc(clone->catches.n + 1, sizeof(bool));
	if (!room->dropped || !room->is_short)
		return -ENOMEM;
	for (size_t i = 0; i < clone->n_parts; i++) {
		uint64_t size = clone->parts[i].end - clone->parts[i].start;

		room->uses[i] = calloc(size + FILLING, 1);
		if (!room->uses[i])
			return -ENOMEM;
		for (uint64_t k = 0; k < size + FILLING; k++)
			if (x86_test(clone->map, X86_READ, clone->parts[i].start + k))
				room->uses[i][k] = USE_NOTHING;
		use_filling(room, i);
	}
	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		if (insn->is_in_place)
			use(room, insn->vaddr, insn->length, insn->flow == X86_FLOW_STOP ? USE_IN_PLACE : USE_CALL);
	}
	use_landings(room);
	return 0;
}

/* ---- catches that are left out --------------------------------------------------------------- */

static bool is_catch(const struct kymo_clone *clone, uint64_t vaddr)
{
	const struct kymo_catch *items = clone->catches.items;
	size_t at = kymo_partition_point(i, clone->catches.n, items[i].vaddr < vaddr);

	return at < clone->catches.n && items[at].vaddr == vaddr;
}

static bool is_written(const struct room *room, const struct x86_clone_insn *insn)
{
	for (unsigned int i = 0; i < insn->length; i++) {
		const uint8_t *at = use_at(room, insn->vaddr + i);

		if (!at || *at == USE_CATCH)
			return true;
	}
	return false;
}

/* Whether the function's own text leads by no branch from there to another catch, or out: the instructions in between,
 * or -1. */
static int run_of(const struct room *room, uint64_t vaddr, int32_t run[RUN_MAX])
{
	const struct kymo_clone *clone = room->clone;
	int32_t at = x86_clone_find(clone, vaddr);

	for (int n = 0; n < RUN_MAX; n++) {
		const struct x86_clone_insn *insn = at < 0 ? NULL : &clone->insns.items[at];

		if (!insn || (n && is_catch(clone, insn->vaddr)))
			return n;
		if (is_written(room, insn))
			return -1;
		run[n] = at;
		switch ((enum x86_flow)insn->flow) {
		case X86_FLOW_RETURN:
		case X86_FLOW_STOP:
		case X86_FLOW_JUMP_INDIRECT: /* to catches, or out */
			return n + 1;
		case X86_FLOW_BRANCH:
			return -1;
		case X86_FLOW_JUMP:
			return insn->to < 0 ? n + 1 : -1;
		default:
			at = insn->next;
			break;
		}
	}
	return -1;
}

static const char *const comers[] = {
	[KYMO_CATCH_ENTRY] = "where the function is entered",    [KYMO_CATCH_RETURN] = "where a call returns to",
	[KYMO_CATCH_TARGET] = "where an indirect jump leads to", [KYMO_CATCH_LANDING] = "a landing pad or label",
	[KYMO_CATCH_JUMP] = "where another function jumps to",
};

static int drop(struct room *room, size_t index)
{
	struct kymo_clone *clone = room->clone;
	const struct kymo_catch *catch = &clone->catches.items[index];
	int32_t run[RUN_MAX];
	int n = catch->kind == KYMO_CATCH_ENTRY ? -1 : run_of(room, catch->vaddr, run);

	if (n < 0)
		return x86_refuse(room->refusal, catch->vaddr, "no room for a jump at 0x%" PRIx64 ", %s", catch->vaddr,
				  comers[catch->kind]);
	for (int i = 0; i < n; i++)
		use(room, clone->insns.items[run[i]].vaddr, clone->insns.items[run[i]].length, USE_IN_PLACE);
	room->dropped[index] = true;
	if (n && !x86_flow_ends((enum x86_flow)clone->insns.items[run[n - 1]].flow))
		clone->is_blurred = true;
	clone->n_uncaught += clone->insns.items[x86_clone_find(clone, catch->vaddr)].flow != X86_FLOW_STOP;
	return 0;
}

/* ---- jumps and islands ----------------------------------------------------------------------- */

static int choose_size(struct room *room, size_t index)
{
	uint64_t vaddr = room->clone->catches.items[index].vaddr;

	/* The short one, where the long one would take a call apart. */
	for (int most = USE_FREE; most <= USE_CALL; most++) {
		if (is_free(room, vaddr, KYMO_JUMP_SIZE, (enum use)most)) {
			use(room, vaddr, KYMO_JUMP_SIZE, USE_CATCH);
			return 0;
		}
		if (is_free(room, vaddr, KYMO_SHORT_JUMP_SIZE, (enum use)most)) {
			use(room, vaddr, KYMO_SHORT_JUMP_SIZE, USE_CATCH);
			room->is_short[index] = true;
			return 0;
		}
	}
	return drop(room, index);
}

static bool find_island(struct room *room, uint64_t vaddr, uint64_t *ret)
{
	uint64_t next = vaddr + KYMO_SHORT_JUMP_SIZE;

	for (uint64_t distance = 0; distance < 128; distance++) {
		if (distance < 128 && is_free(room, next + distance, KYMO_JUMP_SIZE, USE_FREE)) {
			*ret = next + distance;
			return true;
		}
		if (is_free(room, next - distance - 1, KYMO_JUMP_SIZE, USE_FREE)) {
			*ret = next - distance - 1;
			return true;
		}
	}
	return false;
}

static int give_island(struct room *room, size_t index)
{
	struct kymo_catch *catch = &room->clone->catches.items[index];

	if (find_island(room, catch->vaddr, &catch->island)) {
		use(room, catch->island, KYMO_JUMP_SIZE, USE_CATCH);
		return 0;
	}
	if (kymo_page_has(catch->vaddr, KYMO_JUMP_SIZE) &&
	    is_free(room, catch->vaddr + KYMO_SHORT_JUMP_SIZE, KYMO_JUMP_SIZE - KYMO_SHORT_JUMP_SIZE, USE_CALL)) {
		use(room, catch->vaddr, KYMO_JUMP_SIZE, USE_CATCH);
		return 0;
	}
	use(room, catch->vaddr, KYMO_SHORT_JUMP_SIZE, USE_FREE);
	return drop(room, index);
}

static int make_room(struct room *room)
{
	struct kymo_clone *clone = room->clone;
	size_t n = 0;
	int err = 0;

	/* From the last one on: each leaves the first bytes of what follows it alone. */
	for (size_t i = clone->catches.n; !err && i-- > 0;)
		err = choose_size(room, i);
	for (size_t i = 0; !err && i < clone->catches.n; i++)
		err = room->is_short[i] ? give_island(room, i) : 0;
	for (size_t i = 0; !err && i < clone->catches.n; i++)
		if (!room->dropped[i])
			clone->catches.items[n++] = clone->catches.items[i];
	if (!err)
		clone->catches.n = n;
	return err;
}

static bool is_free_for_island(uint64_t vaddr, void *data)
{
	return is_free(data, vaddr, KYMO_JUMP_SIZE, USE_FREE);
}

static void take_for_island(uint64_t vaddr, void *data)
{
	use(data, vaddr, KYMO_JUMP_SIZE, USE_CATCH);
}

/* ---- what runs in place ---------------------------------------------------------------------- */

static int take_apart(struct room *room)
{
	struct kymo_clone *clone = room->clone;

	for (size_t i = 0; i < clone->insns.n; i++) {
		struct x86_clone_insn *insn = &clone->insns.items[i];
		const uint8_t *bytes;
		const char *reason;
		struct x86_insn full;

		if (!insn->is_in_place || !is_written(room, insn))
			continue;
		insn->is_in_place = false;
		if (x86_clone_decode(clone, insn, 0, &full, &bytes) < 0)
			return -EINVAL;
		reason = x86_cannot_move(&full);
		if (reason)
			return x86_refuse(room->refusal, insn->vaddr, "0x%" PRIx64 " %s", insn->vaddr, reason);
	}
	return 0;
}

int x86_clone_catch(struct kymo_clone *clone, struct x86_body *body, struct kymo_refusal *refusal)
{
	struct room room = { .clone = clone, .refusal = refusal };
	const struct x86_clone_space space = { is_free_for_island, take_for_island, &room };
	int err = find_catches(clone, body);

	_Static_assert(sizeof(room.uses) / sizeof(room.uses[0]) == X86_PARTS_MAX, "room for all parts");
	if (err)
		return err;
	err = room_init(&room);
	if (!err)
		err = make_room(&room);
	if (!err)
		err = x86_clone_order(clone, &space, refusal);
	if (!err)
		err = take_apart(&room);
	for (size_t i = 0; !err && i < clone->catches.n; i++)
		clone->insns.items[x86_clone_find(clone, clone->catches.items[i].vaddr)].is_site = true;
	room_deinit(&room);
	return err;
}
