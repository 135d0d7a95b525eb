#include "branch/blocks.h"

#include <errno.h>

#include "arch/clone.h"
#include "base/search.h"
#include "base/vec.h"
#include "branch/branch.h"
#include "wire/clones.h"

#define FRAMES_MAX 65536u /* of a thread; deeper calls are not told to return */

/* ---- the ring -------------------------------------------------------------------------------- */

/*
 * After the newest entry is a 0, and there is none among what was written before it. A handler that came between two
 * stores of an entry leaves more: the interrupted entry is stored over the handler's first one, and the other ones stay
 * beyond it, with a 0 of their own. What lies between two such 0 is of neither side. So in a ring that is full the
 * history is the longest stretch without a 0. In another one it begins where the ring does.
 */
static size_t stretch_before(const uint32_t *ring, size_t size, size_t end)
{
	size_t n = 0;

	while (n < size && ring[(end + size - n - 1) % size])
		n++;
	return n;
}

static struct branch_ring_entries longest_stretch(const uint32_t *ring, size_t size)
{
	struct branch_ring_entries best = { .end = 0, .n = stretch_before(ring, size, 0) };

	for (size_t end = 1, n; end < size; end++) {
		if (ring[end] || !ring[end - 1])
			continue;
		n = stretch_before(ring, size, end);
		if (n > best.n)
			best = (struct branch_ring_entries){ .end = end, .n = n };
	}
	return best;
}

struct branch_ring_entries branch_find_entries(const uint32_t *ring, size_t size, ptrdiff_t position)
{
	const bool is_full = ring[size - 1] || ring[size - 2];
	struct branch_ring_entries ret = { .is_full = is_full };

	if (position >= 0) {
		ret.end = (size_t)position % size;
		ret.n = stretch_before(ring, size, ret.end);
	} else if (is_full) {
		ret = longest_stretch(ring, size);
	} else {
		while (ring[ret.end])
			ret.end++;
		ret.n = ret.end;
	}
	ret.is_full = is_full;
	return ret;
}

/* ---- one thread ------------------------------------------------------------------------------ */

/* A call that has not returned, or code that a signal has interrupted. */
struct frame {
	uint64_t back;  /* a call: where it returns to; else 0 */
	bool is_exact;  /* the called function records its blocks, and was called by this call */
	uint32_t entry; /* that was interrupted */
};

struct follower {
	const struct branch_function *functions;
	size_t n;
	branch_is_taken *is_taken;
	void *data;
	KYMO_VEC(struct frame) frames;
	uint32_t last;              /* the entry before; 0: none is known */
	uint32_t upper;             /* the first half of an anchor, right before; or 0 */
	KYMO_VEC(uint64_t) anchors; /* stamps, after `last` */
	int err;
};

/* ---- anchors --------------------------------------------------------------------------------- */

static void tell_anchors(struct follower *follower)
{
	for (size_t i = 0; i < follower->anchors.n; i++) {
		const struct kymo_branch anchor = { .stamp = follower->anchors.items[i], .kind = KYMO_BRANCH_ANCHOR };

		follower->is_taken(&anchor, false, follower->data);
	}
	follower->anchors.n = 0;
}

/* One that has lost its first half is none. */
static void take_anchor(struct follower *follower, uint32_t entry)
{
	const uint64_t mask = (UINT64_C(1) << KYMO_WIRE_ANCHOR_BITS) - 1;
	const bool is_whole = entry & KYMO_WIRE_ANCHOR_LOW && follower->upper;

	if (is_whole &&
	    !kymo_vec_push(&follower->anchors, (follower->upper & mask) << KYMO_WIRE_ANCHOR_BITS | (entry & mask)))
		follower->err = -ENOMEM;
	follower->upper = entry & KYMO_WIRE_ANCHOR_LOW ? 0 : entry;
}

/* ---- branches -------------------------------------------------------------------------------- */

static const struct branch_function *function_of(const struct follower *follower, uint32_t entry)
{
	const struct branch_function *functions = follower->functions;
	size_t after = kymo_partition_point(i, follower->n, functions[i].first_site <= entry);
	size_t n_sites;

	if (!entry || !after)
		return NULL;
	(void)kymo_clone_sites(functions[after - 1].clone, &n_sites);
	return entry - functions[after - 1].first_site < n_sites ? &functions[after - 1] : NULL;
}

static uint64_t vaddr_of(const struct branch_function *function, uint32_t entry)
{
	size_t n;

	return kymo_clone_sites(function->clone, &n)[entry - function->first_site];
}

static void tell(struct follower *follower, enum kymo_branch_kind kind, uint64_t from, uint64_t to, bool is_gap)
{
	const struct kymo_branch branch = { .from = from, .to = to, .kind = (uint8_t)kind };

	tell_anchors(follower);
	follower->is_taken(&branch, is_gap, follower->data);
}

/* A branch within the function of the last block: what was recorded since came after it. */
static void tell_way(struct follower *follower, enum kymo_branch_kind kind, uint64_t from, uint64_t to)
{
	const struct kymo_branch branch = { .from = from, .to = to, .kind = (uint8_t)kind };

	follower->is_taken(&branch, false, follower->data);
}

/* The branch by which that function was left, likewise. */
static void tell_way_out(struct follower *follower, enum kymo_branch_kind kind, uint64_t from, uint64_t to)
{
	tell_way(follower, kind, from, to);
	tell_anchors(follower);
}

static void push(struct follower *follower, const struct frame *frame)
{
	if (follower->frames.n < FRAMES_MAX && !kymo_vec_push(&follower->frames, *frame))
		follower->err = -ENOMEM;
}

/* What the function does by itself is told. True: it goes on to the entry; false: it leaves. */
static bool go(struct follower *follower, const struct branch_function *function, uint32_t last, uint64_t to,
	       struct kymo_clone_way *way)
{
	bool comes = kymo_clone_way(function->clone, vaddr_of(function, last), to, way);

	while (way->kind == KYMO_CLONE_JUMPS) {
		tell_way(follower, KYMO_BRANCH_JUMP, way->from + function->bias, way->to + function->bias);
		if (way->site == to)
			break;
		comes = kymo_clone_way(function->clone, way->site, to, way);
	}
	if (comes)
		tell_anchors(follower);
	return comes;
}

/* A vaddr; where the entry is another function's, one that is none of this one's sites. */
static uint64_t goal_of(const struct branch_function *function, const struct branch_function *next, uint32_t entry)
{
	return next == function ? vaddr_of(next, entry) : UINT64_MAX;
}

/* Calls that were left by it, at once or by an exception, have returned. Whether one returns there. */
static bool come_back(struct follower *follower, uint64_t to)
{
	for (size_t n = follower->frames.n; n-- > 0;) {
		if (follower->frames.items[n].back != to)
			continue;
		follower->frames.n = n;
		return true;
	}
	return false;
}

/* What was interrupted goes on. */
static bool resume(struct follower *follower, const struct branch_function *next, uint32_t entry)
{
	for (size_t n = follower->frames.n; n-- > 0;) {
		const struct frame *frame = &follower->frames.items[n];
		const struct branch_function *function = frame->back ? NULL : function_of(follower, frame->entry);
		const uint64_t to = function ? goal_of(function, next, entry) : 0;
		struct kymo_clone_way way;

		if (!function || !kymo_clone_way(function->clone, vaddr_of(function, frame->entry), to, &way))
			continue;
		(void)go(follower, function, frame->entry, to, &way);
		follower->frames.n = n;
		return true;
	}
	return false;
}

static void enter(struct follower *follower, const struct branch_function *next, uint32_t entry, bool may)
{
	const uint64_t to = vaddr_of(next, entry);
	enum kymo_catch_kind kind;

	if (come_back(follower, to + next->bias))
		may = true;
	else if (resume(follower, next, entry))
		return;
	tell(follower, KYMO_BRANCH_ENTER, 0, to + next->bias, !may || !kymo_clone_is_catch(next->clone, to, &kind));
}

/* Whether a direct branch leads to that entry of a function. */
static bool leads_to(const struct kymo_clone_way *way, const struct branch_function *function,
		     const struct branch_function *next, uint32_t entry)
{
	return way->site && way->site + function->bias == vaddr_of(next, entry) + next->bias;
}

static void tell_call(struct follower *follower, const struct kymo_clone_way *way,
		      const struct branch_function *function)
{
	tell_way_out(follower, KYMO_BRANCH_CALL, way->from + function->bias,
		     way->to ? way->to + function->bias : KYMO_BRANCH_UNKNOWN);
}

static void follow_call(struct follower *follower, const struct kymo_clone_way *way,
			const struct branch_function *function, const struct branch_function *next, uint32_t entry)
{
	const bool is_exact = leads_to(way, function, next, entry);

	tell_call(follower, way, function);
	push(follower, &(struct frame){ .back = way->back + function->bias, .is_exact = is_exact });
	if (!is_exact)
		enter(follower, next, entry, true);
}

static void follow_return(struct follower *follower, const struct kymo_clone_way *way,
			  const struct branch_function *function, const struct branch_function *next, uint32_t entry)
{
	const uint64_t to = vaddr_of(next, entry) + next->bias;
	const struct frame *top = follower->frames.n ? &follower->frames.items[follower->frames.n - 1] : NULL;

	if (!top || !top->is_exact || top->back != to) {
		enter(follower, next, entry, true);
		return;
	}
	follower->frames.n--;
	tell(follower, KYMO_BRANCH_RETURN, way->from + function->bias, to, false);
}

static void follow_jump_out(struct follower *follower, const struct kymo_clone_way *way,
			    const struct branch_function *function, const struct branch_function *next, uint32_t entry)
{
	if (way->to)
		tell_way_out(follower, KYMO_BRANCH_JUMP, way->from + function->bias, way->to + function->bias);
	if (leads_to(way, function, next, entry))
		return;
	if (follower->frames.n)
		follower->frames.items[follower->frames.n - 1].is_exact = false;
	enter(follower, next, entry, true);
}

/* It can't be in the function's own way: a signal has come, if what was entered is where others enter. */
static void follow_lost(struct follower *follower, const struct branch_function *next, uint32_t entry)
{
	const uint64_t to = vaddr_of(next, entry);
	enum kymo_catch_kind kind;
	bool is_entry = kymo_clone_is_catch(next->clone, to, &kind) && kind == KYMO_CATCH_ENTRY;

	if (is_entry)
		push(follower, &(struct frame){ .entry = follower->last });
	if (is_entry)
		tell(follower, KYMO_BRANCH_ENTER, 0, to + next->bias, false);
	else
		enter(follower, next, entry, false);
}

static void follow(struct follower *follower, uint32_t entry)
{
	const struct branch_function *function = function_of(follower, follower->last);
	const struct branch_function *next = function_of(follower, entry);
	struct kymo_clone_way way;

	if (!next)
		return;
	if (!function) {
		tell(follower, KYMO_BRANCH_ENTER, 0, vaddr_of(next, entry) + next->bias, follower->last != 0);
		return;
	}
	if (go(follower, function, follower->last, goal_of(function, next, entry), &way))
		return;
	switch (way.kind) {
	case KYMO_CLONE_CALLS:
		follow_call(follower, &way, function, next, entry);
		break;
	case KYMO_CLONE_RETURNS:
		follow_return(follower, &way, function, next, entry);
		break;
	case KYMO_CLONE_LEAVES:
		follow_jump_out(follower, &way, function, next, entry);
		break;
	default:
		follow_lost(follower, next, entry);
		break;
	}
}

static bool has_code_at(const struct branch_function *function, uint64_t address)
{
	size_t n;
	const struct kymo_extent *parts = kymo_clone_parts(function->clone, &n);

	for (size_t i = 0; i < n; i++)
		if (address - function->bias >= parts[i].start && address - function->bias < parts[i].end)
			return true;
	return false;
}

/* The thread was in other code at last, which is not recorded. */
static void follow_to_end(struct follower *follower, uint64_t at)
{
	const struct branch_function *function = function_of(follower, follower->last);
	struct kymo_clone_way way;

	if (!function || has_code_at(function, at))
		return;
	(void)kymo_clone_way(function->clone, vaddr_of(function, follower->last), UINT64_MAX, &way);
	if (way.kind == KYMO_CLONE_CALLS)
		tell_call(follower, &way, function);
}

int branch_follow(const struct branch_function *functions, size_t n, const uint32_t *entries, size_t n_entries,
		  const uint64_t *at, branch_is_taken *is_taken, void *data)
{
	struct follower follower = { .functions = functions, .n = n, .is_taken = is_taken, .data = data };

	for (size_t i = 0; i < n_entries && !follower.err; i++) {
		if (entries[i] & KYMO_WIRE_ANCHOR) {
			take_anchor(&follower, entries[i]);
			continue;
		}
		follower.upper = 0;
		follow(&follower, entries[i]);
		follower.last = entries[i];
	}
	if (at && !follower.err)
		follow_to_end(&follower, *at);
	tell_anchors(&follower);
	kymo_vec_deinit(&follower.anchors);
	kymo_vec_deinit(&follower.frames);
	return follower.err;
}
