/*
 * All instructions by which a thread leaves a function, or the reason why they are not known.
 *
 * The claim: a thread that enters the function at its start leaves it by one exit, once, unless by an exception,
 * longjmp or its end; and no thread passes an exit that has not entered at the start.
 *
 * Why it holds
 *
 *   1. The parts are the function. Those that the compiler split off are handed in, or found: whatever a branch with
 *	the frame still there, or a conditional one, or a table leads to, if only the parts lead to it. That it joins is
 *	right even if it is a function of its own that only this one goes on to: it returns to this one's caller.
 *   2. Nothing enters the parts but at the start (sources.c): else a return would be counted for a call that was not.
 *   3. Each instruction that is reached is looked at (entries.c: what is not marked is not entered), and tells whether
 *	it leaves (verdicts.c), or all is refused.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/exits.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/heights.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/parts.h"
#include "arch/x86_64/site.h"
#include "arch/x86_64/verdicts.h"
#include "base/search.h"

struct exits {
	KYMO_VEC(struct kymo_exit) list;
	uint64_t unreached; /* after the last instruction that is reached */
};

/* Whether some jump that is not understood may lead anywhere into the function. */
static bool is_computed(struct x86_body *body)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		ptrdiff_t index = x86_function_at(body->code, body->parts[i].start);

		if (index >= 0 && body->map->functions[index].computed)
			return true;
	}
	return false;
}

/* No branch that is known leads here: then nothing does, if there is no sign of one that was not seen. */
static int check_unreached(struct x86_body *body, const struct exits *exits, const struct x86_insn *insn)
{
	bool leaves = insn->flow == X86_FLOW_RETURN || insn->flow == X86_FLOW_JUMP_INDIRECT ||
		      (insn->has_target && insn->flow != X86_FLOW_CALL && !x86_body_part(body, insn->target));

	if (!leaves || (!is_computed(body) && x86_last(body->map, 1u << X86_SCANNED | 1u << X86_KNOWN, exits->unreached,
						       insn->address) == UINT64_MAX))
		return 0;
	return x86_refuse(body->refusal, insn->address, "0x%lx would leave the function, but it may be data",
			  insn->address);
}

static int take_exit(struct x86_body *body, struct exits *exits, const struct x86_insn *insn,
		     const struct x86_state *state)
{
	struct kymo_exit exit = { .vaddr = insn->address };

	switch (x86_judge(body, insn, state)) {
	case X86_STAYS:
		return 0;
	case X86_RETURNS:
		break;
	case X86_LEAVES:
		exit.is_tail = true;
		exit.target = insn->has_target ? insn->target : 0;
		break;
	default:
		return -EPERM;
	}
	return kymo_vec_push(&exits->list, exit) ? 0 : -ENOMEM;
}

static int find_in_part(struct x86_body *body, const struct x86_part *part, struct exits *exits)
{
	exits->unreached = part->start;
	for (uint64_t at = part->start; at < part->end; at++) {
		const struct x86_state *state = &part->states[at - part->start];
		struct x86_insn insn;
		int err = 0;

		if (!x86_test(body->map, X86_STARTS, at))
			continue;
		if (x86_body_decode(body, at, &insn) < 0)
			return x86_refuse(body->refusal, at,
					  "the instruction at 0x%lx continues beyond the end of the function", at);
		if (state->sp != X86_UNREACHED) {
			err = take_exit(body, exits, &insn, state);
			exits->unreached = at + insn.length;
		} else if (at >= exits->unreached) {
			err = check_unreached(body, exits, &insn);
		}
		if (err)
			return err;
	}
	return 0;
}

static int compare_exits(const void *a, const void *b)
{
	const struct kymo_exit *left = a, *right = b;

	return left->vaddr < right->vaddr ? -1 : left->vaddr > right->vaddr;
}

static int find_exits(struct x86_body *body, const struct kymo_extent *parts, size_t n_parts, struct exits *exits)
{
	int err = n_parts ? 0 : -EINVAL;

	for (size_t i = 0; !err && i < n_parts; i++)
		err = x86_body_add(body, parts[i].start, parts[i].end);
	if (!err)
		err = x86_find_parts(body);
	if (!err)
		err = x86_check_sources(body);
	for (size_t i = 0; !err && i < body->n_parts; i++)
		err = find_in_part(body, &body->parts[i], exits);
	if (!err && exits->list.n)
		qsort(exits->list.items, exits->list.n, sizeof(struct kymo_exit), compare_exits);
	return err;
}

int kymo_exits_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		      const struct kymo_extent *parts, size_t n_parts, struct kymo_exit **ret, size_t *n_ret,
		      struct kymo_refusal *refusal)
{
	struct kymo_refusal unused;
	struct exits exits = { 0 };
	struct x86_body body;
	int err;

	x86_body_init(&body, code, map, refusal ? refusal : &unused);
	err = find_exits(&body, parts, n_parts, &exits);
	x86_body_deinit(&body);
	if (!err && !exits.list.n && !kymo_vec_reserve(&exits.list, 1))
		err = -ENOMEM;
	if (err) {
		kymo_vec_deinit(&exits.list);
		return err;
	}
	*ret = exits.list.items;
	*n_ret = exits.list.n;
	return 0;
}

/* ---- each instruction ------------------------------------------------------------------------ */

/* The first function that ends after `vaddr`. */
static size_t first_function(const struct kymo_entry_map *map, uint64_t vaddr)
{
	return kymo_partition_point(i, map->n_functions, map->extents[i].end <= vaddr);
}

int kymo_instructions_create(const struct kymo_entry_map *map, uint64_t low, uint64_t high, uint64_t **ret,
			     size_t *n_ret)
{
	KYMO_VEC(uint64_t) list = { 0 };
	bool decodes = false;

	for (size_t i = first_function(map, low); i < map->n_functions && map->extents[i].start < high; i++) {
		uint64_t start = map->extents[i].start > low ? map->extents[i].start : low;
		uint64_t end = map->extents[i].end < high ? map->extents[i].end : high;

		if (!map->functions[i].decodes || map->functions[i].bad)
			continue;
		decodes = true;
		for (uint64_t at = start; at < end; at++) {
			if (x86_test(map, X86_STARTS, at) && !kymo_vec_push(&list, at)) {
				kymo_vec_deinit(&list);
				return -ENOMEM;
			}
		}
	}
	if (!decodes)
		return -EPERM;
	*ret = list.items;
	*n_ret = list.n;
	return 0;
}

bool kymo_is_read(const struct kymo_entry_map *map, uint64_t vaddr, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (x86_test(map, X86_READ, vaddr + i))
			return true;
	return false;
}

bool kymo_is_reached(const struct kymo_entry_map *map, uint64_t vaddr)
{
	const unsigned int entered = 1u << X86_FIRM | 1u << X86_LIKELY;
	size_t i = first_function(map, vaddr);
	uint64_t last;

	if (i >= map->n_functions || vaddr < map->extents[i].start || !map->functions[i].decodes ||
	    map->functions[i].bad || !x86_test(map, X86_STARTS, vaddr))
		return false;
	last = x86_last(map, entered | 1u << X86_STOPS, map->extents[i].start, vaddr);
	return last != UINT64_MAX && (x86_test(map, X86_FIRM, last) || x86_test(map, X86_LIKELY, last));
}
