/*
 * If a pun finds no address for its trampoline, it gets other bytes: an instruction that has no probe is displaced,
 * too.
 *
 *   successor	one of the instructions whose bytes the jump relies on becomes a jump to its own displaced
 *		copy. The address of that copy decides the bytes:
 *
 *			site	  successor
 *			e9 xx xx | e9 xx xx xx xx
 *			   ^^^^^^^^^^^^		the site's distance
 *				      ^^^^^^^^^^^	the successor's
 *
 *   neighbor	the site becomes a short jump to a jmp rel32 inside of an instruction near by. It begins after
 *		the first byte of the jump to that one's copy:
 *
 *			site	    neighbor
 *			eb xx  ...  e9 e9 xx xx xx xx
 *				       ^^^^^^^^^^^		the neighbor's distance
 *					  ^^^^^^^^^^^		the site's
 *
 * Both are two jumps of which the second may begin inside of the first's distance. The bytes that they share are
 * tried one after the other: they are high ones of the first, which decide the region that it leads to, and low
 * ones of the second.
 *
 * The evicted instruction's plan is put in first and removed last. Alone it is a pun like any other. Nothing leads to
 * the second jump in a neighbor until the site's jump is there.
 *
 * System calls are not evicted: a process may be told where they may come from, and no spec asks for this one.
 */
#include "arch/x86_64/evict.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "arch/x86_64/check.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/pun.h"

#define SHORT_SIZE 2    /* jmp rel8 */
#define PREFIXES_MAX 2u /* in front of an evicted instruction's jump */
#define CHOICES_MAX 4u
#define LOW_VALUES 4u /* tried for a shared byte that is not the highest one */

struct pair {
	struct x86_layout layout;
	unsigned int first, second; /* where in it the jumps are */
	unsigned int n_shared;
	uint8_t shared[CHOICES_MAX]; /* where the bytes are whose value is to be found by trying, the highest last */
	bool is_prefix[CHOICES_MAX];
	uint64_t first_to, second_to;
};

/* ---- two jumps at once ----------------------------------------------------------------------- */

static unsigned int values_of(const struct pair *pair, unsigned int i)
{
	if (i + 1 < pair->n_shared)
		return LOW_VALUES;
	return pair->is_prefix[i] ? X86_N_PREFIXES : 256;
}

/* Value number `n`: of the highest byte of a distance, 0, -1, 1, -2 …; of others some that lie far apart. */
static uint8_t shared_value(const struct pair *pair, unsigned int i, unsigned int n)
{
	if (pair->is_prefix[i])
		return x86_prefixes[n];
	if (i + 1 < pair->n_shared)
		return (uint8_t)(n * (256 / LOW_VALUES));
	return (uint8_t)(n & 1 ? 255 - n / 2 : n / 2);
}

static bool reserve_pair(struct pair *pair, struct x86_site *site)
{
	pair->first_to = x86_layout_reserve(&pair->layout, site, pair->first);
	if (!pair->first_to)
		return false;
	pair->second_to = x86_layout_reserve(&pair->layout, site, pair->second);
	if (!pair->second_to)
		site->room->release(site->room->data, pair->first_to, KYMO_JUMP_SIZE);
	return pair->second_to;
}

/* Whether a jump at `at` may lead to something free at all, whatever the shared bytes are. */
static bool may_lead(const struct pair *pair, struct x86_site *site, unsigned int at)
{
	struct x86_layout layout = pair->layout;
	uint64_t got;

	for (unsigned int i = 0; i < pair->n_shared; i++)
		layout.open[pair->shared[i]] = true;
	got = x86_layout_reserve(&layout, site, at);
	if (got)
		site->room->release(site->room->data, got, KYMO_JUMP_SIZE);
	return got;
}

/*
 * Find bytes for both jumps. `prefixed` (less than `second` or equal to it) is where the second one's prefixes
 * begin. True: both addresses are reserved.
 */
static bool solve(struct pair *pair, struct x86_site *site, unsigned int prefixed)
{
	struct x86_layout layout;
	unsigned int total = 1;

	x86_layout_set(&pair->layout, pair->first, 0xe9);
	for (unsigned int i = prefixed; i < pair->second; i++)
		x86_layout_set(&pair->layout, i, x86_prefixes[0]);
	x86_layout_set(&pair->layout, pair->second, 0xe9);
	pair->n_shared = 0;
	for (unsigned int i = prefixed; i < pair->first + KYMO_JUMP_SIZE; i++) {
		if (i < pair->second || pair->layout.open[i]) {
			pair->shared[pair->n_shared] = (uint8_t)i;
			pair->is_prefix[pair->n_shared++] = i < pair->second;
		}
	}
	if (!may_lead(pair, site, pair->first) || !may_lead(pair, site, pair->second))
		return false;
	for (unsigned int i = 0; i < pair->n_shared; i++)
		total *= values_of(pair, i);
	layout = pair->layout;
	for (unsigned int n = 0; n < total && site->budget; n++) {
		unsigned int rest = n;

		pair->layout = layout;
		for (unsigned int i = 0; i < pair->n_shared; i++) {
			x86_layout_set(&pair->layout, pair->shared[i],
				       shared_value(pair, i, rest % values_of(pair, i)));
			rest /= values_of(pair, i);
		}
		if (reserve_pair(pair, site))
			return true;
	}
	return false;
}

/* The evicted instruction's jump gets that many prefixes. Refuses where the bytes leave no choice for either jump. */
static int set_prefixes(struct pair *pair, const struct x86_site *site, unsigned int n, struct kymo_refusal *refusal)
{
	int err;

	for (unsigned int i = 0; i < n; i++)
		x86_layout_set(&pair->layout, i, x86_prefixes[0]);
	err = x86_layout_check(&pair->layout, site, pair->first, refusal);
	return err ? err : x86_layout_check(&pair->layout, site, pair->second, refusal);
}

/* ---- successor ------------------------------------------------------------------------------- */

/* The site's jump after `before` prefixes, the successor's after `after`. */
static int try_pair(struct x86_site *site, const struct x86_site *next, unsigned int before, unsigned int after,
		    struct kymo_plan *plans, struct kymo_refusal *refusal)
{
	unsigned int offset = (unsigned int)(next->vaddr - site->vaddr);
	unsigned int open = MIN(x86_changeable(site), before + KYMO_JUMP_SIZE);
	unsigned int next_open = MIN(x86_changeable(next), after + KYMO_JUMP_SIZE);
	struct pair pair = { .first = before, .second = offset + after };
	int err;

	x86_layout_init(&pair.layout, site, site->vaddr, pair.second + KYMO_JUMP_SIZE);
	x86_layout_open(&pair.layout, 0, open);
	x86_layout_open(&pair.layout, offset, next_open);
	err = set_prefixes(&pair, site, before, refusal);
	if (err)
		return err;
	if (!solve(&pair, site, offset))
		return x86_refuse(
			refusal, next->vaddr,
			"wherever the jump at 0x%lx leads, no address was found for both it and that at 0x%lx",
			next->vaddr, site->vaddr);
	x86_plan_alone(next, KYMO_TACTIC_SUCCESSOR, &pair.layout, next_open, after + KYMO_JUMP_SIZE, pair.second_to,
		       &plans[0]);
	plans[0].is_evicted = true;
	x86_plan_alone(site, KYMO_TACTIC_SUCCESSOR, &pair.layout, open, before + KYMO_JUMP_SIZE, pair.first_to,
		       &plans[1]);
	return 0;
}

static int try_next(struct x86_site *site, const struct x86_site *next, struct kymo_plan *plans,
		    struct kymo_refusal *refusal)
{
	unsigned int offset = (unsigned int)(next->vaddr - site->vaddr), open = x86_changeable(site);
	unsigned int next_open = x86_changeable(next);
	int err;

	if (!next_open)
		return x86_refuse_fixed(next, refusal);
	err = x86_refuse(refusal, next->vaddr, "no jump at 0x%lx can rely on the instruction at 0x%lx", site->vaddr,
			 next->vaddr);
	for (unsigned int before = 0; before < open && before + KYMO_JUMP_SIZE <= X86_INSN_MAX && err; before++) {
		if (offset >= before + KYMO_JUMP_SIZE)
			continue;
		for (unsigned int after = 0; after <= PREFIXES_MAX && after < next_open && err; after++)
			err = try_pair(site, next, before, after, plans, refusal);
	}
	return err;
}

int x86_try_successor(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	unsigned int open = x86_changeable(site);
	uint64_t first = site->vaddr + site->insn.length;
	struct x86_site next;

	*n = 2;
	if (!open)
		return x86_refuse_fixed(site, refusal);
	x86_refuse(refusal, first, "none of the bytes that the jump relies on is the first of an instruction");
	for (uint64_t vaddr = first; vaddr < site->vaddr + open + KYMO_JUMP_SIZE - 1; vaddr++) {
		if (x86_test(site->map, X86_STARTS, vaddr) && !x86_find_evictable(site, vaddr, &next, refusal) &&
		    !try_next(site, &next, plans, refusal))
			return 0;
	}
	return -EPERM;
}

/* ---- neighbor ------------------------------------------------------------------------------- */

/* The way from the site to a jump in a neighbor. */
struct hop {
	unsigned int open;  /* bytes of it that may be changed: 1 or 2 */
	uint64_t low, high; /* where it may lead to */
};

static int find_hop(const struct x86_site *site, struct hop *ret, struct kymo_refusal *refusal)
{
	struct hop hop = { .open = MIN(x86_changeable(site), SHORT_SIZE) };
	uint64_t from = site->vaddr + SHORT_SIZE;
	struct x86_layout layout;

	if (!hop.open)
		return x86_refuse_fixed(site, refusal);
	hop.low = from - 128;
	hop.high = from + 127;
	if (hop.open < SHORT_SIZE) {
		x86_layout_init(&layout, site, site->vaddr, SHORT_SIZE);
		if (layout.size < SHORT_SIZE)
			return x86_refuse(refusal, from - 1, "the text ends at 0x%lx", from - 1);
		if (site->room->is_unsteady(site->room->data, from - 1, 1))
			return x86_refuse(refusal, from - 1,
					  "a short jump would rely on 0x%lx, which another tracer may change",
					  from - 1);
		hop.low = hop.high = from + (uint64_t)(int8_t)layout.bytes[1];
	}
	*ret = hop;
	return 0;
}

/* The second jump at `offset` in the neighbor, whose own comes after `before` prefixes. */
static int try_offset(struct x86_site *site, const struct x86_site *near, const struct hop *hop, unsigned int before,
		      unsigned int offset, struct kymo_plan *plans, struct kymo_refusal *refusal)
{
	unsigned int span = MAX(before, offset) + KYMO_JUMP_SIZE, open = x86_changeable(near);
	unsigned int patch_size = MIN(open, span);
	struct pair pair = { .first = before, .second = offset };
	struct x86_layout site_layout = { .base = site->vaddr, .size = SHORT_SIZE, .bytes = { 0xeb } };
	int err;

	/* Its jumps would rely on bytes that the site's is to change. */
	if (near->vaddr < site->vaddr + SHORT_SIZE && site->vaddr < near->vaddr + span)
		return -EPERM;
	x86_layout_init(&pair.layout, site, near->vaddr, span);
	x86_layout_open(&pair.layout, 0, patch_size);
	err = set_prefixes(&pair, site, before, refusal);
	if (err)
		return err;
	if (!solve(&pair, site, offset))
		return -EPERM;
	x86_plan_alone(near, KYMO_TACTIC_NEIGHBOR, &pair.layout, patch_size, span, pair.first_to, &plans[0]);
	plans[0].is_evicted = true;
	site_layout.bytes[1] = (uint8_t)(near->vaddr + offset - (site->vaddr + SHORT_SIZE));
	x86_plan_alone(site, KYMO_TACTIC_NEIGHBOR, &site_layout, hop->open, SHORT_SIZE, pair.second_to, &plans[1]);
	return 0;
}

static int try_near(struct x86_site *site, const struct x86_site *near, const struct hop *hop, struct kymo_plan *plans,
		    struct kymo_refusal *refusal)
{
	unsigned int open = x86_changeable(near);

	for (unsigned int offset = 1; offset < open; offset++) {
		if (near->vaddr + offset - hop->low > hop->high - hop->low)
			continue;
		for (unsigned int before = 0; before < offset && before <= PREFIXES_MAX; before++) {
			if (!try_offset(site, near, hop, before, offset, plans, refusal))
				return 0;
		}
	}
	return -EPERM;
}

/* Whether an instruction at `vaddr` may have the place that the short jump leads to after its first byte. */
static bool is_in_reach(const struct hop *hop, uint64_t vaddr)
{
	return (int64_t)(hop->low - vaddr) < (int64_t)X86_INSN_MAX && (int64_t)(hop->high - vaddr) > 0;
}

int x86_try_neighbor(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	const uint64_t farthest = 128 + X86_INSN_MAX;
	struct x86_site near;
	struct hop hop = { 0 };
	unsigned int seen = 0;
	int err = find_hop(site, &hop, refusal);

	*n = 2;
	if (err)
		return err;
	/* Those close by first, on both sides in turn. */
	for (uint64_t i = 0; i < 2 * farthest && site->budget; i++) {
		uint64_t vaddr = i % 2 ? site->vaddr + i / 2 + 1 : site->vaddr - i / 2 - 1;

		if (!is_in_reach(&hop, vaddr) || !x86_test(site->map, X86_STARTS, vaddr))
			continue;
		if (x86_find_evictable(site, vaddr, &near, refusal))
			continue;
		seen++;
		if (!try_near(site, &near, &hop, plans, refusal))
			return 0;
	}
	if (hop.low == hop.high)
		return x86_refuse(refusal, hop.low,
				  "a short jump of one byte leads to 0x%lx; no instruction has room for a jump there",
				  hop.low);
	return x86_refuse(
		refusal, site->vaddr,
		"none of the %u instructions in reach of a short jump that may be displaced has room for a jump", seen);
}
