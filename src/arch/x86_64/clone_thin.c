/*
 * Sites that are left out.
 *
 * What a site leads to without another site in between is its *region*. Entries tell branches if each region is a tree:
 * no instruction is reached in it by two ways. So where a branch parts and comes together again within a loop, one of
 * its sides is recorded, and what follows both is not:
 *
 *	1:	...		recorded: a way back leads there
 *		jne 2f
 *		...
 *		jmp 3f
 *	2:	...		recorded
 *	3:	...		by one way from 1, and by one from 2
 *		jmp 1b
 *
 * (Or 2 and 3 are, and not 1.)
 *
 * A region may have one end at most at which the function is left. What is recorded next may be where it comes back,
 * which is a catch: so it leads to no catch then. Catches stay sites: control comes there from elsewhere.
 *
 * Sites are tried one by one, those of inner loops and those that save a register first. One is left out if the regions
 * that grow by that are still trees.
 */
#include "arch/x86_64/clone_thin.h"

#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/clone_live.h"
#include "arch/x86_64/decode.h"

#define REGION_MAX 512   /* instructions */
#define BRANCHES_MAX 32  /* of a region, that are conditional */
#define BEFORE_MAX 2048u /* instructions before a site up to other sites */
#define SPILLED_COSTS 3  /* times as much as a site with a free register */

struct thinner {
	struct kymo_clone *clone;
	uint32_t *first;            /* by instruction: in `before`, those that lead to it; one more at the end */
	int32_t *before;            /* instructions */
	uint32_t *seen, *seen_back; /* by instruction: in which walk */
	uint32_t walk, walk_back;
	bool *is_catch;
	KYMO_VEC(int32_t) stack, sources;
};

/* ---- what leads where ------------------------------------------------------------------------ */

static void find_before(struct thinner *thinner)
{
	const struct kymo_clone *clone = thinner->clone;
	uint32_t sum = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < clone->insns.n; i++) {
			int32_t next[2];

			for (int k = x86_clone_next(&clone->insns.items[i], next); k-- > 0;)
				if (next[k] >= 0 && !pass)
					thinner->first[next[k]]++;
				else if (next[k] >= 0)
					thinner->before[--thinner->first[next[k]]] = (int32_t)i;
		}
		for (size_t i = 0; i <= clone->insns.n && !pass; i++)
			thinner->first[i] = sum += thinner->first[i];
	}
}

/* ---- regions --------------------------------------------------------------------------------- */

struct region {
	int n_insns, n_branches, n_ends;
	bool has_catch;
};

/* Control comes to `at`, or leaves where that is none. False: by a second way. */
static bool reach(struct thinner *thinner, struct region *region, int32_t at)
{
	const struct kymo_clone *clone = thinner->clone;

	if (at < 0)
		return ++region->n_ends <= 1;
	if (thinner->seen[at] == thinner->walk)
		return false;
	thinner->seen[at] = thinner->walk;
	region->has_catch |= thinner->is_catch[at];
	return clone->insns.items[at].is_site || kymo_vec_push(&thinner->stack, at);
}

static bool is_tree(struct thinner *thinner, int32_t site)
{
	const struct kymo_clone *clone = thinner->clone;
	struct region region = { .n_insns = 0 };

	thinner->walk++;
	thinner->stack.n = 0;
	if (!kymo_vec_push(&thinner->stack, site))
		return false;
	while (thinner->stack.n) {
		int32_t next[2];
		const int n = x86_clone_next(&clone->insns.items[thinner->stack.items[--thinner->stack.n]], next);

		region.n_branches += n > 1;
		if (++region.n_insns > REGION_MAX || region.n_branches > BRANCHES_MAX)
			return false;
		for (int i = 0; i < n; i++)
			if (!reach(thinner, &region, next[i]))
				return false;
	}
	return !region.n_ends || !region.has_catch;
}

/* The sites whose regions an instruction is in, which is none itself. */
static bool find_sources(struct thinner *thinner, int32_t at)
{
	const struct kymo_clone *clone = thinner->clone;
	uint32_t n = 0;

	thinner->walk_back++;
	thinner->sources.n = thinner->stack.n = 0;
	if (!kymo_vec_push(&thinner->stack, at))
		return false;
	while (thinner->stack.n) {
		const int32_t to = thinner->stack.items[--thinner->stack.n];

		for (uint32_t i = thinner->first[to]; i < thinner->first[to + 1]; i++) {
			const int32_t from = thinner->before[i];

			if (thinner->seen_back[from] == thinner->walk_back)
				continue;
			thinner->seen_back[from] = thinner->walk_back;
			if (++n > BEFORE_MAX)
				return false;
			if (clone->insns.items[from].is_site ? !kymo_vec_push(&thinner->sources, from)
							     : !kymo_vec_push(&thinner->stack, from))
				return false;
		}
	}
	return true;
}

/* ---- sites ----------------------------------------------------------------------------------- */

static void try_without(struct thinner *thinner, int32_t at)
{
	struct x86_clone_insn *insn = &thinner->clone->insns.items[at];
	bool is_good;

	insn->is_site = false;
	is_good = find_sources(thinner, at);
	for (size_t i = 0; is_good && i < thinner->sources.n; i++)
		is_good = is_tree(thinner, thinner->sources.items[i]);
	insn->is_site = !is_good;
}

struct candidate {
	int32_t at;
	int cost;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return left->cost != right->cost ? right->cost - left->cost : left->at - right->at;
}

static int thin(struct thinner *thinner)
{
	const struct kymo_clone *clone = thinner->clone;
	struct candidate *candidates = malloc((clone->insns.n + 1) * sizeof(*candidates));
	size_t n = 0;

	if (!candidates)
		return -ENOMEM;
	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];
		const bool is_spilled = x86_clone_free_register(clone, insn) == X86_NO_REGISTER;

		if (insn->is_site && !thinner->is_catch[i])
			candidates[n++] = (struct candidate){ .at = (int32_t)i,
							      .cost = insn->weight * (is_spilled ? SPILLED_COSTS : 1) };
	}
	qsort(candidates, n, sizeof(*candidates), compare_candidates);
	for (size_t i = 0; i < n; i++)
		try_without(thinner, candidates[i].at);
	free(candidates);
	return 0;
}

int x86_clone_thin(struct kymo_clone *clone)
{
	const size_t n = clone->insns.n;
	struct thinner thinner = {
		.clone = clone,
		.first = calloc(n + 1, sizeof(*thinner.first)),
		.before = calloc(2 * n + 1, sizeof(*thinner.before)),
		.seen = calloc(n + 1, sizeof(*thinner.seen)),
		.seen_back = calloc(n + 1, sizeof(*thinner.seen_back)),
		.is_catch = calloc(n + 1, sizeof(*thinner.is_catch)),
	};
	int err =
		thinner.first && thinner.before && thinner.seen && thinner.seen_back && thinner.is_catch ? 0 : -ENOMEM;

	for (size_t i = 0; i < clone->catches.n && !err; i++)
		thinner.is_catch[x86_clone_find(clone, clone->catches.items[i].vaddr)] = true;
	if (!err) {
		find_before(&thinner);
		err = thin(&thinner);
	}
	free(thinner.first);
	free(thinner.before);
	free(thinner.seen);
	free(thinner.seen_back);
	free(thinner.is_catch);
	kymo_vec_deinit(&thinner.stack);
	kymo_vec_deinit(&thinner.sources);
	return err;
}
