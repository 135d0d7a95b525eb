/*
 * Where threads come back into a clone from the function's own text.
 *
 * Control enters the function, other than by what is copied: at its start; where calls return to; at what its indirect
 * jumps lead to; at landing pads, and wherever else data has an address of it. Each of these gets a jump of five bytes.
 * What these bytes were is not executed otherwise, as each branch to them is in the clone: so they need not be whole
 * instructions, and branches to between them do not matter. They may not reach the next catch, or text that is read, or
 * text that is executed in place.
 *
 * A catch without that much room is left out if what follows it, in the function's own text, comes to the next catch,
 * or out of the function, by a few instructions. These run in place then.
 */
#include "arch/x86_64/clone_catch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/heights.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/relocate.h"
#include "arch/x86_64/site.h"
#include "base/search.h"

#define RUN_MAX 24 /* instructions that run in place after a catch that was left out */

/* ---- all of them ----------------------------------------------------------------------------- */

struct finder {
	struct kymo_clone *clone;
	int err;
	bool is_loose; /* an indirect jump was seen whose table is not in sight */
};

static void add_catch(struct finder *finder, uint64_t vaddr, enum kymo_catch_kind kind)
{
	struct kymo_catch one = { kymo_site_of(finder->clone->map, vaddr), kind };

	if (x86_clone_find(finder->clone, one.vaddr) >= 0 && !kymo_vec_push(&finder->clone->catches, one))
		finder->err = -ENOMEM;
}

static void add_target(void *closure, uint64_t target)
{
	add_catch(closure, target, KYMO_CATCH_TARGET);
}

static void find_by_flow(struct finder *finder, struct x86_body *body)
{
	struct kymo_clone *clone = finder->clone;

	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		if (x86_flow_is_call((enum x86_flow)insn->flow) && insn->next >= 0)
			add_catch(finder, insn->vaddr + insn->length, KYMO_CATCH_RETURN);
		if (insn->stays_in && insn->flow == X86_FLOW_JUMP_INDIRECT &&
		    !x86_body_targets(body, insn->vaddr, add_target, finder))
			finder->is_loose = true;
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

static int find_catches(struct kymo_clone *clone, struct x86_body *body)
{
	struct finder finder = { .clone = clone };
	size_t n = 0;

	add_catch(&finder, clone->parts[0].start, KYMO_CATCH_ENTRY);
	find_by_flow(&finder, body);
	if (finder.is_loose)
		find_loose(&finder);
	for (size_t i = 0; i < clone->code->n_entries; i++) {
		uint64_t entry = clone->code->entries[i];

		if (entry != clone->parts[0].start && x86_body_part(body, entry))
			add_catch(&finder, entry, KYMO_CATCH_LANDING);
	}
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

/* Whether the byte may be overwritten as far as bytes tell. */
static bool is_free_byte(const struct kymo_clone *clone, uint64_t vaddr)
{
	if (!x86_area_at(clone->map, vaddr) || x86_test(clone->map, X86_READ, vaddr))
		return false;
	for (size_t i = 0; i < clone->n_parts; i++)
		if (vaddr >= clone->parts[i].start && vaddr < clone->parts[i].end)
			return true;
	/* What fills the text up to the next function. */
	return x86_function_at(clone->code, vaddr) < 0 && !kymo_entry_map_has(clone->map, vaddr);
}

static bool has_room(const struct kymo_clone *clone, uint64_t vaddr, uint64_t limit)
{
	int32_t at = x86_clone_find(clone, vaddr);

	if (limit - vaddr < KYMO_JUMP_SIZE)
		return false;
	for (uint64_t i = 0; i < KYMO_JUMP_SIZE; i++)
		if (!is_free_byte(clone, vaddr + i))
			return false;
	for (size_t i = (size_t)at; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		if (insn->vaddr - vaddr >= KYMO_JUMP_SIZE)
			break;
		if (insn->runs_on || insn->flow == X86_FLOW_STOP)
			return false;
	}
	return true;
}

static bool is_catch(const struct kymo_clone *clone, uint64_t vaddr)
{
	const struct kymo_catch *items = clone->catches.items;
	size_t at = kymo_partition_point(i, clone->catches.n, items[i].vaddr < vaddr);

	return at < clone->catches.n && items[at].vaddr == vaddr;
}

/* One of those from `first` on that has room. */
static bool is_overwritten(const struct kymo_clone *clone, const bool *dropped, size_t first, uint64_t vaddr)
{
	for (size_t i = first; i < clone->catches.n && clone->catches.items[i].vaddr < vaddr; i++)
		if (!dropped[i] && vaddr - clone->catches.items[i].vaddr < KYMO_JUMP_SIZE)
			return true;
	return false;
}

/* A walk through the function's own text. */
struct walk {
	struct kymo_clone *clone;
	const bool *dropped;
	size_t first; /* catches from here on are decided */
	int left;
	int32_t seen[RUN_MAX];
	int n;
};

/* Whether all ways from instruction `at` come to a catch or out of the function before long. */
static bool runs_on(struct walk *walk, int32_t at, bool is_first)
{
	for (;; is_first = false) {
		const struct x86_clone_insn *insn = at < 0 ? NULL : &walk->clone->insns.items[at];

		if (!insn || (!is_first && is_catch(walk->clone, insn->vaddr)))
			return true;
		if (!walk->left-- || is_overwritten(walk->clone, walk->dropped, walk->first, insn->vaddr))
			return false;
		walk->seen[walk->n++] = at;
		switch ((enum x86_flow)insn->flow) {
		case X86_FLOW_RETURN:
		case X86_FLOW_STOP:
		case X86_FLOW_JUMP_INDIRECT: /* to catches, or out */
			return true;
		case X86_FLOW_BRANCH:
			if (!runs_on(walk, insn->to, false))
				return false;
			at = insn->next;
			break;
		case X86_FLOW_JUMP:
			at = insn->to;
			break;
		default:
			at = insn->next;
			break;
		}
	}
}

static bool can_drop(struct kymo_clone *clone, const bool *dropped, size_t index)
{
	struct walk walk = { .clone = clone, .dropped = dropped, .first = index + 1, .left = RUN_MAX };

	if (!runs_on(&walk, x86_clone_find(clone, clone->catches.items[index].vaddr), true))
		return false;
	for (int i = 0; i < walk.n; i++)
		clone->insns.items[walk.seen[i]].runs_on = true;
	return true;
}

static const char *const comers[] = {
	[KYMO_CATCH_ENTRY] = "where the function is entered",
	[KYMO_CATCH_RETURN] = "where a call returns to",
	[KYMO_CATCH_TARGET] = "where an indirect jump leads to",
	[KYMO_CATCH_LANDING] = "a landing pad or label",
};

static int make_room(struct kymo_clone *clone, bool *dropped, struct kymo_refusal *refusal)
{
	uint64_t limit = UINT64_MAX;
	size_t n = 0;

	for (size_t i = clone->catches.n; i-- > 0;) {
		const struct kymo_catch *catch = &clone->catches.items[i];

		if (has_room(clone, catch->vaddr, limit)) {
			limit = catch->vaddr;
			continue;
		}
		if (catch->kind == KYMO_CATCH_ENTRY || !can_drop(clone, dropped, i))
			return x86_refuse(refusal, catch->vaddr, "no room for a jump at 0x%" PRIx64 ", %s",
					  catch->vaddr, comers[catch->kind]);
		dropped[i] = true;
		clone->n_uncaught += clone->insns.items[x86_clone_find(clone, catch->vaddr)].flow != X86_FLOW_STOP;
	}
	for (size_t i = 0; i < clone->catches.n; i++)
		if (!dropped[i])
			clone->catches.items[n++] = clone->catches.items[i];
	clone->catches.n = n;
	return 0;
}

/* ---- what runs in place ---------------------------------------------------------------------- */

static bool is_broken(const struct kymo_clone *clone, const struct x86_clone_insn *insn)
{
	const struct kymo_catch *items = clone->catches.items;
	size_t at = kymo_partition_point(i, clone->catches.n, items[i].vaddr + KYMO_JUMP_SIZE <= insn->vaddr);

	return at < clone->catches.n && items[at].vaddr < insn->vaddr + insn->length;
}

static int take_apart(struct kymo_clone *clone, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < clone->insns.n; i++) {
		struct x86_clone_insn *insn = &clone->insns.items[i];
		const uint8_t *bytes;
		const char *reason;
		struct x86_insn full;

		if (!insn->is_in_place || !is_broken(clone, insn))
			continue;
		insn->is_in_place = false;
		if (x86_clone_decode(clone, insn, 0, &full, &bytes) < 0)
			return -EINVAL;
		reason = x86_cannot_move(&full);
		if (reason)
			return x86_refuse(refusal, insn->vaddr, "0x%" PRIx64 " %s", insn->vaddr, reason);
	}
	return 0;
}

int x86_clone_catch(struct kymo_clone *clone, struct x86_body *body, struct kymo_refusal *refusal)
{
	int err = find_catches(clone, body);
	bool *dropped;

	if (err)
		return err;
	dropped = calloc(clone->catches.n + 1, sizeof(*dropped));
	if (!dropped)
		return -ENOMEM;
	err = make_room(clone, dropped, refusal);
	free(dropped);
	if (err)
		return err;
	for (size_t i = 0; i < clone->catches.n; i++)
		clone->insns.items[x86_clone_find(clone, clone->catches.items[i].vaddr)].is_site = true;
	return take_apart(clone, refusal);
}
