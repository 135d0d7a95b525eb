/*
 * Stretches: loops in which one register has the position all the time, where the one that the function holds does not.
 *
 * A stretch is a set of instructions from each of which the code leads to each other one. No instruction of it reads or
 * writes its register, and none looks at the stack pointer: so what the function has in the register may be kept on the
 * stack, below the red zone, while a thread is in the stretch. Where control comes in, it is pushed and the position is
 * loaded; where control leaves, it is popped. A register that is free all the time need not be pushed.
 *
 * The largest loop is tried first. One that can't be a stretch is taken without the instructions at which it is
 * entered: what goes round in it without these are the loops inside of it. Calls end ways, so no stretch has one.
 */
#include "arch/x86_64/clone_stretch.h"

#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/clone_live.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/decode.h"

#define ROUNDS_MAX 64u /* sets of instructions that are looked at */
#define STRETCHES_MAX 4096u
#define STACK_BITS (1u << RSP)
/* rbp has frames, which profilers follow; r12 and r13 take one byte more. */
static const uint8_t by_preference[] = { R15, R14, RBX, R11, R10, R9, R8, RDI, RSI, RDX, RCX, RAX };

struct place {
	uint32_t set;           /* of which it is: 0: of none */
	uint32_t number, low;   /* of Tarjan's algorithm; number 0: not seen */
	uint32_t component;     /* 0: not known */
	uint32_t n_next, taken; /* of `next`, and how many were followed */
	const int32_t *next;    /* `own`, or all targets of tables */
	int32_t own[2];
};

struct finder {
	struct kymo_clone *clone;
	struct place *places; /* by instruction */
	int32_t *path, *open; /* stacks: those whose ways are followed; those without a component */
	size_t n_path, n_open;
	uint32_t n_numbers, n_components, n_sets;
	int err;
};

/* ---- loops ----------------------------------------------------------------------------------- */

static void see(struct finder *finder, int32_t at)
{
	struct place *place = &finder->places[at];

	place->number = place->low = ++finder->n_numbers;
	place->component = 0;
	place->taken = 0;
	finder->path[finder->n_path++] = at;
	finder->open[finder->n_open++] = at;
}

static void lower(struct place *place, uint32_t low)
{
	place->low = low < place->low ? low : place->low;
}

/* All that leads to `at` again was seen. */
static void close_component(struct finder *finder, int32_t at)
{
	int32_t last;

	finder->n_components++;
	do {
		last = finder->open[--finder->n_open];
		finder->places[last].component = finder->n_components;
	} while (last != at);
}

static void follow_from(struct finder *finder, int32_t start, uint32_t set)
{
	see(finder, start);
	while (finder->n_path) {
		const int32_t at = finder->path[finder->n_path - 1];
		struct place *place = &finder->places[at];

		if (place->taken < place->n_next) {
			const int32_t to = place->next[place->taken++];

			if (to < 0 || finder->places[to].set != set)
				continue;
			if (!finder->places[to].number)
				see(finder, to);
			else if (!finder->places[to].component)
				lower(place, finder->places[to].number);
			continue;
		}
		if (place->low == place->number)
			close_component(finder, at);
		if (--finder->n_path)
			lower(&finder->places[finder->path[finder->n_path - 1]], place->low);
	}
}

static bool goes_round(const struct finder *finder, int32_t at)
{
	const struct place *place = &finder->places[at];

	for (uint32_t i = 0; i < place->n_next; i++)
		if (place->next[i] >= 0 && finder->places[place->next[i]].component == place->component &&
		    finder->places[place->next[i]].set == place->set)
			return true;
	return false;
}

/* ---- what can be a stretch ------------------------------------------------------------------- */

struct loop {
	const struct finder *finder;
	uint32_t component, set;
	uint16_t used, live; /* registers */
	bool is_bare;
};

static bool is_in(const struct loop *loop, size_t index)
{
	const struct place *place = &loop->finder->places[index];

	return place->component == loop->component && place->set == loop->set;
}

/* Whether it may be in one. */
static bool may_stretch(const struct x86_clone_insn *insn)
{
	const bool is_branch = insn->flow == X86_FLOW_BRANCH || insn->flow == X86_FLOW_JUMP;

	return (is_branch ? insn->to >= 0 : insn->flow == X86_FLOW_NEXT || insn->is_tabled) &&
	       (insn->flow == X86_FLOW_JUMP || insn->is_tabled || insn->next >= 0) &&
	       !((insn->reads | insn->writes | insn->clobbers) & STACK_BITS);
}

/* False: it can't be one. Each loop has a site. `is_bare`: at some site the register that the function holds has not
 * the position. */
static bool look_at(struct loop *loop, const struct kymo_clone *clone, size_t first, size_t last)
{
	for (size_t i = first; i <= last; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		if (!is_in(loop, i))
			continue;
		if (!may_stretch(insn))
			return false;
		loop->used |= insn->reads | insn->writes | insn->clobbers;
		if (insn->is_tabled)
			loop->used |= (uint16_t)(1u << insn->scratch);
		loop->live |= insn->live;
		loop->is_bare |= insn->is_site && (clone->held == X86_NO_REGISTER || insn->live >> clone->held & 1);
		loop->is_bare |= clone->held < X86_NO_REGISTER && insn->clobbers >> clone->held & 1;
	}
	return true;
}

static int choose_register(const struct loop *loop, bool *pushes_ret)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < sizeof(by_preference); i++) {
			const int reg = by_preference[i];

			*pushes_ret = pass != 0;
			if (!(loop->used >> reg & 1) && (pass || (X86_VOLATILE >> reg & 1 && !(loop->live >> reg & 1))))
				return reg;
		}
	return X86_NO_REGISTER;
}

/* Whether it is one now, or needs not be one. */
static bool make_stretch(struct finder *finder, struct loop *loop, size_t first, size_t last)
{
	struct kymo_clone *clone = finder->clone;
	struct x86_clone_stretch stretch;
	int reg;

	if (!look_at(loop, clone, first, last))
		return false;
	if (!loop->is_bare)
		return true;
	reg = choose_register(loop, &stretch.pushes);
	if (reg == X86_NO_REGISTER || clone->stretches.n >= STRETCHES_MAX)
		return false;
	stretch.reg = (uint8_t)reg;
	if (!kymo_vec_push(&clone->stretches, stretch)) {
		finder->err = -ENOMEM;
		return true;
	}
	for (size_t i = first; i <= last; i++)
		if (is_in(loop, i))
			clone->insns.items[i].stretch = (uint16_t)clone->stretches.n;
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Those at which the loop is entered are taken out of the set `inner`, into which the others come. */
static void take_apart(struct finder *finder, const struct loop *loop, size_t first, size_t last, uint32_t inner,
		       bool *is_entered)
{
	const struct kymo_clone *clone = finder->clone;
	bool has_entry = false;

	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct place *place = &finder->places[i];

		for (uint32_t k = 0; k < place->n_next && !is_in(loop, i); k++)
			if (place->next[k] >= 0 && is_in(loop, (size_t)place->next[k]))
				is_entered[place->next[k]] = true;
	}
	for (size_t i = first; i <= last; i++)
		has_entry |= is_in(loop, i) && is_entered[i];
	for (size_t i = first; i <= last; i++) {
		if (!is_in(loop, i))
			continue;
		finder->places[i].set = is_entered[i] || (!has_entry && i == first) ? 0 : inner;
		is_entered[i] = false;
	}
}

/* The components of a set: those that are no stretches come into a set of their own. */
static void look_through(struct finder *finder, uint32_t set, bool *is_entered)
{
	const struct kymo_clone *clone = finder->clone;
	const uint32_t before = finder->n_components;

	for (size_t i = 0; i < clone->insns.n; i++)
		if (finder->places[i].set == set)
			finder->places[i].number = 0;
	for (size_t i = 0; i < clone->insns.n; i++)
		if (finder->places[i].set == set && !finder->places[i].number)
			follow_from(finder, (int32_t)i, set);
	for (size_t i = 0; i < clone->insns.n && !finder->err; i++) {
		struct loop loop = { .finder = finder, .component = finder->places[i].component, .set = set };
		size_t last = i;

		if (finder->places[i].set != set || loop.component <= before)
			continue;
		if (!goes_round(finder, (int32_t)i)) {
			finder->places[i].set = 0;
			continue;
		}
		for (size_t k = i + 1; k < clone->insns.n; k++)
			last = is_in(&loop, k) ? k : last;
		if (make_stretch(finder, &loop, i, last) || finder->n_sets >= ROUNDS_MAX)
			take_apart(finder, &loop, i, last, 0, is_entered);
		else
			take_apart(finder, &loop, i, last, ++finder->n_sets, is_entered);
	}
}

int x86_clone_find_stretches(struct kymo_clone *clone)
{
	const size_t n = clone->insns.n;
	struct finder finder = {
		.clone = clone,
		.places = calloc(n + 1, sizeof(*finder.places)),
		.path = calloc(n + 1, sizeof(*finder.path)),
		.open = calloc(n + 1, sizeof(*finder.open)),
		.n_sets = 1,
	};
	bool *is_entered = calloc(n + 1, sizeof(*is_entered));
	int32_t *targets = calloc(clone->targets.n + 1, sizeof(*targets));

	if (!finder.places || !finder.path || !finder.open || !is_entered || !targets)
		finder.err = -ENOMEM;
	for (size_t i = 0; i < clone->targets.n && !finder.err; i++)
		targets[i] = x86_clone_find(clone, clone->targets.items[i]);
	for (size_t i = 0; i < n && !finder.err; i++) {
		struct place *place = &finder.places[i];
		const bool is_tabled = clone->insns.items[i].is_tabled;

		place->set = 1;
		place->n_next = (uint32_t)x86_clone_next(&clone->insns.items[i], place->own);
		place->next = is_tabled ? targets : place->own;
		if (is_tabled)
			place->n_next = (uint32_t)clone->targets.n;
	}
	for (uint32_t set = 1; set <= finder.n_sets && !finder.err; set++)
		look_through(&finder, set, is_entered);
	free(finder.places);
	free(finder.path);
	free(finder.open);
	free(is_entered);
	free(targets);
	return finder.err;
}
