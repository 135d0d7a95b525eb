/*
 * The order in which the jumps of a function's catches are written, one by one.
 *
 * When all are in, no thread executes the bytes that they take. The recorder may die between two, and threads then go
 * on in the function's own text from each catch that is not written yet. There the bytes of one that is written may be
 * in the middle of a jump. In
 *
 *	     call f
 *	A:   dec  %ebx		the jump here takes what B is, too
 *	B:   test %eax,%eax
 *	     call g
 *	C:   jne  B
 *
 * the jump at A may be written only when that at C is: a thread that returns to C would go on in the middle of it. So a
 * jump is written when no catch that is not written leads to what it takes, but by way of one that is. More are written
 * later, so that stays so. Jumps are taken out in the reverse order. The first bytes of a catch are no matter: what
 * comes there comes into the clone.
 *
 * Two jumps may each have to wait for the other. One of them gets an island elsewhere then. A function for which there
 * is no order all the same is refused.
 */
#include "arch/x86_64/clone_order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "arch/plan.h"
#include "arch/x86_64/clone.h"
#include "arch/x86_64/site.h"
#include "base/search.h"

#define ROUNDS_MAX 64
#define INSN_MAX 15u

/* From where threads come to an instruction by the function's own text: the last catch on the way, which is not
 * written, by its index; or these. */
#define NONE -1
#define SEVERAL -2

#define NOWHERE UINT64_MAX

struct ordering {
	struct kymo_clone *clone;
	const struct x86_clone_space *space;
	bool *is_written, *has_island, *is_moved; /* by catch */
	int32_t *catch_at;                        /* by instruction: the catch there, or NONE */
	int32_t *comes_from;                      /* by instruction */
	KYMO_VEC(int32_t) reached;                /* instructions whose successors are to be looked at */
};

static bool ordering_init(struct ordering *ordering)
{
	const struct kymo_clone *clone = ordering->clone;
	const size_t n_insns = clone->insns.n, n = clone->catches.n;

	ordering->is_written = calloc(n + 1, sizeof(bool));
	ordering->has_island = calloc(n + 1, sizeof(bool));
	ordering->is_moved = calloc(n + 1, sizeof(bool));
	ordering->catch_at = calloc(n_insns + 1, sizeof(int32_t));
	ordering->comes_from = calloc(n_insns + 1, sizeof(int32_t));
	if (!ordering->is_written || !ordering->has_island || !ordering->is_moved || !ordering->catch_at ||
	    !ordering->comes_from)
		return false;
	for (size_t i = 0; i < n_insns; i++)
		ordering->catch_at[i] = NONE;
	for (size_t i = 0; i < n; i++)
		ordering->catch_at[x86_clone_find(clone, clone->catches.items[i].vaddr)] = (int32_t)i;
	return true;
}

static void ordering_deinit(struct ordering *ordering)
{
	free(ordering->is_written);
	free(ordering->has_island);
	free(ordering->is_moved);
	free(ordering->catch_at);
	free(ordering->comes_from);
	kymo_vec_deinit(&ordering->reached);
}

/* ---- what may be executed in place ----------------------------------------------------------- */

/* Each instruction is noted twice at the most. What leads to a catch ends there: it begins anew where that is not
 * written, and goes to the clone where it is. */
static int note(struct ordering *ordering, int32_t at, int32_t from)
{
	const int32_t had = ordering->comes_from[at];

	if (had == SEVERAL || had == from)
		return 0;
	ordering->comes_from[at] = had == NONE ? from : SEVERAL;
	return kymo_vec_push(&ordering->reached, at) ? 0 : -ENOMEM;
}

static int follow(struct ordering *ordering)
{
	int err = 0;

	while (ordering->reached.n && !err) {
		const int32_t at = ordering->reached.items[--ordering->reached.n];
		int32_t next[2];
		const int n = x86_clone_next(&ordering->clone->insns.items[at], next);

		for (int i = 0; i < n && !err; i++) {
			if (next[i] >= 0 && ordering->catch_at[next[i]] == NONE)
				err = note(ordering, next[i], ordering->comes_from[at]);
		}
	}
	return err;
}

static int find_reached(struct ordering *ordering)
{
	const struct kymo_clone *clone = ordering->clone;
	int err = 0;

	for (size_t i = 0; i < clone->insns.n; i++)
		ordering->comes_from[i] = NONE;
	for (size_t i = 0; i < clone->catches.n && !err; i++) {
		if (ordering->is_written[i])
			continue;
		err = note(ordering, x86_clone_find(clone, clone->catches.items[i].vaddr), (int32_t)i);
		if (!err)
			err = follow(ordering);
	}
	return err;
}

/*
 * Whether none of the bytes is executed by what no jump leads away yet: `start` is an instruction that may be, as it
 * becomes a jump, and so may be what `own` alone leads to.
 */
static bool is_quiet(const struct ordering *ordering, uint64_t vaddr, unsigned int size, uint64_t start, int32_t own)
{
	const struct x86_clone_insn *items = ordering->clone->insns.items;
	const size_t n = ordering->clone->insns.n;
	const uint64_t from = vaddr < INSN_MAX ? 0 : vaddr - INSN_MAX;

	for (size_t i = kymo_partition_point(k, n, items[k].vaddr < from); i < n && items[i].vaddr < vaddr + size; i++)
		if (items[i].vaddr + items[i].length > vaddr && items[i].vaddr != start &&
		    ordering->comes_from[i] != NONE && ordering->comes_from[i] != own)
			return false;
	return true;
}

/* ---- the order ------------------------------------------------------------------------------- */

static int add_step(struct ordering *ordering, size_t index, bool is_island)
{
	const struct kymo_clone_step step = { .index = (uint32_t)index, .is_island = is_island };
	bool *is_done = is_island ? ordering->has_island : ordering->is_written;

	is_done[index] = true;
	return kymo_vec_push(&ordering->clone->steps, step) ? 0 : -ENOMEM;
}

/* An island comes first, at which the short jump does not lead away yet what comes by its catch. */
static int add_what_can_be(struct ordering *ordering, size_t index)
{
	const struct kymo_catch *catch = &ordering->clone->catches.items[index];
	const unsigned int size = catch->island ? KYMO_SHORT_JUMP_SIZE : KYMO_JUMP_SIZE;
	int err = 0;

	if (ordering->is_written[index])
		return 0;
	if (catch->island && !ordering->has_island[index] &&
	    is_quiet(ordering, catch->island, KYMO_JUMP_SIZE, NOWHERE, NONE))
		err = add_step(ordering, index, true);
	if (err || (catch->island && !ordering->has_island[index]) ||
	    !is_quiet(ordering, catch->vaddr, size, catch->vaddr, (int32_t)index))
		return err;
	return add_step(ordering, index, false);
}

/* All that can be written after what is written already. What is written meanwhile leads less to the others. */
static int add_round(struct ordering *ordering)
{
	int err = find_reached(ordering);

	for (size_t i = 0; i < ordering->clone->catches.n && !err; i++)
		err = add_what_can_be(ordering, i);
	return err;
}

/* ---- other islands --------------------------------------------------------------------------- */

/* Where no thread comes as it is now; the nearest. */
static bool find_island(const struct ordering *ordering, uint64_t vaddr, uint64_t *ret)
{
	const struct x86_clone_space *space = ordering->space;
	const uint64_t next = vaddr + KYMO_SHORT_JUMP_SIZE;

	for (int distance = 0; distance < 256; distance++) {
		*ret = distance % 2 ? next - 1 - (unsigned int)distance / 2 : next + (unsigned int)distance / 2;
		if (space->is_free(*ret, space->data) && is_quiet(ordering, *ret, KYMO_JUMP_SIZE, NOWHERE, NONE))
			return true;
	}
	return false;
}

/* A catch that has to wait for others, which wait for it, gets an island elsewhere: most of the function is in its
 * clone alone by then. What it had stays taken. */
static bool move_one(struct ordering *ordering, size_t index)
{
	struct kymo_catch *catch = &ordering->clone->catches.items[index];
	uint64_t island;

	if (ordering->is_written[index] || ordering->has_island[index] || ordering->is_moved[index] ||
	    !is_quiet(ordering, catch->vaddr, KYMO_SHORT_JUMP_SIZE, catch->vaddr, (int32_t)index) ||
	    !find_island(ordering, catch->vaddr, &island))
		return false;
	catch->island = island;
	ordering->space->take(island, ordering->space->data);
	ordering->is_moved[index] = true;
	return true;
}

static bool move_some(struct ordering *ordering)
{
	bool has_moved = false;

	for (size_t i = 0; i < ordering->clone->catches.n; i++)
		has_moved |= move_one(ordering, i);
	return has_moved;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static size_t first_left(const struct ordering *ordering)
{
	size_t i = 0;

	while (i < ordering->clone->catches.n && ordering->is_written[i])
		i++;
	return i;
}

static int check_all(const struct ordering *ordering, struct kymo_refusal *refusal)
{
	const size_t left = first_left(ordering);
	uint64_t vaddr;

	if (left == ordering->clone->catches.n)
		return 0;
	vaddr = ordering->clone->catches.items[left].vaddr;
	return x86_refuse(refusal, vaddr,
			  "the jump at 0x%" PRIx64 " and another one would each have to be written before the other",
			  vaddr);
}

int x86_clone_order(struct kymo_clone *clone, const struct x86_clone_space *space, struct kymo_refusal *refusal)
{
	struct ordering ordering = { .clone = clone, .space = space };
	int err = ordering_init(&ordering) ? 0 : -ENOMEM;
	bool goes_on = true;

	for (int i = 0; i < ROUNDS_MAX && !err && goes_on; i++) {
		const size_t had = clone->steps.n;

		err = add_round(&ordering);
		goes_on = clone->steps.n > had || move_some(&ordering);
	}
	if (!err)
		err = check_all(&ordering, refusal);
	ordering_deinit(&ordering);
	return err;
}
