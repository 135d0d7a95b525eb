/*
 * Which branches were taken between two entries of a ring.
 *
 * What a branch leads to is a site. So from one site to the next the code is a straight line, the *run* of the first:
 * conditional branches that were not taken, and then one that was, or another end. So the next entry tells which
 * branch of the run was taken, if no two of them lead to the same site. Where two do, an instruction between them is
 * made a site, too: the beginning of the last block, as late as it can be. In
 *
 *		je 1f
 *		inc %eax	made a site: without that both ways would record 1f alone
 *	1:
 *
 * A run may leave the function, and what is recorded next may be where it comes back. That is a catch. So a run that
 * leaves is divided, too, after a branch that leads to a catch, and after each conditional branch that leaves.
 */
#include "arch/x86_64/clone_ways.h"

#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/decode.h"

#define SEEN_MAX 64
#define BUDGET 65536 /* instructions that a search looks at */

/* ---- dividing -------------------------------------------------------------------------------- */

struct run {
	struct kymo_clone *clone;
	int32_t seen[SEEN_MAX]; /* targets of branches so far */
	size_t n_seen;
	bool sees_catch;
	int32_t block; /* where the last block begins that is no site; -1: none */
};

static bool has_seen(const struct run *run, int32_t to)
{
	for (size_t i = 0; i < run->n_seen; i++)
		if (run->seen[i] == to)
			return true;
	return false;
}

static void divide(struct run *run)
{
	if (run->block >= 0)
		run->clone->insns.items[run->block].is_site = true;
}

/* A conditional branch. Whether the run goes on. */
static bool pass_branch(struct run *run, const struct x86_clone_insn *insn)
{
	struct x86_clone_insn *insns = run->clone->insns.items;
	enum kymo_catch_kind kind;

	if (insn->to < 0) {
		if (run->sees_catch)
			divide(run);
		if (insn->next >= 0)
			insns[insn->next].is_site = true;
		return false;
	}
	if (insn->to == insn->next)
		return true;
	if (has_seen(run, insn->to) || run->n_seen == SEEN_MAX) {
		divide(run);
		return false;
	}
	run->seen[run->n_seen++] = insn->to;
	run->sees_catch |= kymo_clone_is_catch(run->clone, insns[insn->to].vaddr, &kind);
	if (insn->next >= 0 && !insns[insn->next].is_site)
		run->block = insn->next;
	return true;
}

static void divide_run(struct kymo_clone *clone, size_t first)
{
	struct run run = { .clone = clone, .block = -1 };
	int32_t at = (int32_t)first;

	for (size_t n = 0; n <= clone->insns.n; n++) {
		const struct x86_clone_insn *insn = at < 0 ? NULL : &clone->insns.items[at];

		if (insn && n && insn->is_site) {
			if (has_seen(&run, at))
				divide(&run);
			return;
		}
		if (insn && insn->flow == X86_FLOW_NEXT) {
			at = insn->next;
			continue;
		}
		if (insn && insn->flow == X86_FLOW_BRANCH) {
			if (!pass_branch(&run, insn))
				return;
			at = insn->next;
			continue;
		}
		if (insn && insn->flow == X86_FLOW_JUMP && insn->to >= 0 ? has_seen(&run, insn->to) : run.sees_catch)
			divide(&run);
		return;
	}
}

int x86_clone_divide(struct kymo_clone *clone)
{
	size_t n = 0, before;

	/* New sites have runs of their own, and end others'. */
	do {
		before = n;
		n = 0;
		for (size_t i = 0; i < clone->insns.n; i++) {
			if (clone->insns.items[i].is_site)
				divide_run(clone, i);
			n += clone->insns.items[i].is_site;
		}
	} while (n != before);
	return 0;
}

/* ---- following ------------------------------------------------------------------------------- */

static struct kymo_clone_way way_of(enum kymo_clone_way_kind kind, const struct kymo_clone *clone,
				    const struct x86_clone_insn *insn)
{
	return (struct kymo_clone_way){
		.kind = kind,
		.from = insn->vaddr,
		.to = insn->target,
		.site = insn->target ? kymo_site_of(clone->map, insn->target) : 0,
		.back = insn->vaddr + insn->length,
	};
}

/* An indirect jump that stays in leads to a catch. If that was left out, what comes next may be anything. */
static bool follow_indirect(const struct kymo_clone *clone, const struct x86_clone_insn *insn, uint64_t next,
			    struct kymo_clone_way *ret)
{
	enum kymo_catch_kind kind;

	*ret = way_of(KYMO_CLONE_LEAVES, clone, insn);
	if (!insn->stays_in || clone->is_blurred || !kymo_clone_is_catch(clone, next, &kind) ||
	    (clone->n_uncaught && (kind == KYMO_CATCH_ENTRY || kind == KYMO_CATCH_RETURN)))
		return false;
	ret->kind = KYMO_CLONE_JUMPS;
	ret->to = ret->site = next;
	return true;
}

/* Where the function is left. */
static bool follow_end(const struct kymo_clone *clone, const struct x86_clone_insn *insn, uint64_t next,
		       struct kymo_clone_way *ret)
{
	enum kymo_clone_way_kind kind = KYMO_CLONE_LOST;

	switch ((enum x86_flow)insn->flow) {
	case X86_FLOW_JUMP_INDIRECT:
		return follow_indirect(clone, insn, next, ret);
	case X86_FLOW_JUMP:
	case X86_FLOW_BRANCH:
		kind = KYMO_CLONE_LEAVES;
		break;
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_INDIRECT:
		kind = KYMO_CLONE_CALLS;
		break;
	case X86_FLOW_RETURN:
		kind = KYMO_CLONE_RETURNS;
		break;
	default:
		break;
	}
	*ret = way_of(kind, clone, insn);
	return false;
}

/* What is looked for in a region: a site, or where it leaves. */
struct search {
	const struct kymo_clone *clone;
	uint64_t next; /* the site; 0: where it leaves */
	int budget;
	const struct x86_clone_insn *first; /* taken branch on the way there; NULL: none */
	const struct x86_clone_insn *end;   /* where it leaves */
};

static bool search_from(struct search *search, int32_t at, bool is_first);

/* Where a branch that is taken leads to. */
static bool search_taken(struct search *search, const struct x86_clone_insn *insn)
{
	if (insn->to < 0)
		search->end = insn;
	if (insn->to < 0 ? search->next != 0 : !search_from(search, insn->to, false))
		return false;
	search->first = insn->to < 0 ? NULL : insn;
	return true;
}

/* Regions are trees (clone_thin.c): there is one way at most. */
static bool search_from(struct search *search, int32_t at, bool is_first)
{
	while (at >= 0 && search->budget-- > 0) {
		const struct x86_clone_insn *insn = &search->clone->insns.items[at];

		if (insn->is_site && !is_first)
			return insn->vaddr == search->next;
		is_first = false;
		if (insn->flow != X86_FLOW_NEXT && insn->flow != X86_FLOW_BRANCH && insn->flow != X86_FLOW_JUMP) {
			search->end = insn;
			return !search->next;
		}
		if (insn->flow != X86_FLOW_NEXT && (insn->to < 0 || insn->to != insn->next) &&
		    search_taken(search, insn))
			return true;
		if (insn->flow == X86_FLOW_JUMP)
			return false;
		at = insn->next;
	}
	return false;
}

bool kymo_clone_way(const struct kymo_clone *clone, uint64_t from, uint64_t next, struct kymo_clone_way *ret)
{
	const int32_t at = x86_clone_find(clone, from);
	struct search search = { .clone = clone, .next = next, .budget = BUDGET };
	struct kymo_clone_way end;
	bool comes;

	*ret = (struct kymo_clone_way){ .kind = KYMO_CLONE_LOST, .from = from };
	if (search_from(&search, at, true)) {
		*ret = search.first ? way_of(KYMO_CLONE_JUMPS, clone, search.first)
				    : (struct kymo_clone_way){ .kind = KYMO_CLONE_FALLS, .to = next, .site = next };
		return true;
	}
	search = (struct search){ .clone = clone, .budget = BUDGET };
	if (!search_from(&search, at, true))
		return false;
	comes = follow_end(clone, search.end, next, &end);
	*ret = search.first ? way_of(KYMO_CLONE_JUMPS, clone, search.first) : end;
	return comes;
}
