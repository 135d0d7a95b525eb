/*
 * Which bytes are displaced for a probe, and why that is safe.
 *
 * A plan overwrites bytes at a site with a jump, and hands the `window` bytes of the instructions that were there
 * to kymo_relocate(). After that every execution must do what it did before. For one instruction (pun.c, evict.c) that
 * holds when
 *
 *   1. it is an instruction as the processor executes it: the function decodes from its start, nothing enters it inside
 *      of an instruction, and something is known to lead to the site;
 *   2. it does the same elsewhere (relocate.c), and no code of the module reads the bytes that are replaced;
 *   3. the kernel does not abort into or out of it: no restartable sequence;
 *   4. no other code knows the code by its bytes or its address: unwinders know the signal return trampoline, C
 *      libraries the system call at which a thread may be canceled;
 *   5. the bytes are written in one piece: they lie in one page, because a longer copy may be cut short between two;
 *   6. the stack has room for the pad (stacks.c).
 *
 * For several at once (group) also when
 *
 *   7. nothing enters the window except at its first byte: not by a branch, table, pointer or landing pad (entries.c
 *      has the argument), and not by a return: calls are displaced as the last instruction or not at all;
 *   8. no thread sleeps in the window with an address that it will use later, other than one that the recorder sees and
 *      moves: no system call is displaced with others (a restarted one goes back two bytes).
 *
 * A branch back to the first byte of the window is an execution of the site like any other: it stays a branch to the
 * site, and finds the jump there.
 *
 * After an instruction that ends the flow, bytes of the window are never executed, but may be data that is read. So
 * only NOPs, which are never read, are displaced there. After the end of a function a jump may also cover padding:
 * NOPs, int3 or zeros and nothing else up to the next function.
 *
 * Of JIT code (jit.c) only the bytes are known: one instruction is displaced, what follows is left alone, and the user
 * vouches for rule 1.
 *
 * If the process handles faults, nothing is displaced that may cause one (faults.c): a handler that looks the PC up
 * finds it at its original address.
 *
 * A plan does not protect from two things: a program that begins to handle faults later, unless the caller plans it
 * again; and shadow stacks, if a call is displaced.
 */
#include <errno.h>
#include <string.h>

#include "arch/x86_64/check.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/evict.h"
#include "arch/x86_64/faults.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/pun.h"
#include "arch/x86_64/window.h"
#include "base/cleanup.h"

#define RESERVATIONS_MAX 4000u /* addresses asked for by one tactic at the most */

/* Best first. */
static const struct {
	const char *name;
	x86_tactic *try;
	bool needs_room;
	bool is_alone; /* displaces one instruction and touches no other: nothing has to be known of control flow */
} tactics[KYMO_N_TACTICS] = {
	[KYMO_TACTIC_NONE] = { "none", NULL, true, false },
	[KYMO_TACTIC_JUMP] = { "jump", x86_try_jump, false, true },
	[KYMO_TACTIC_GROUP] = { "group", x86_try_group, false, false },
	[KYMO_TACTIC_PUN] = { "pun", x86_try_pun, true, true },
	[KYMO_TACTIC_PREFIX] = { "prefixed pun", x86_try_prefix, true, true },
	[KYMO_TACTIC_SUCCESSOR] = { "evicted successor", x86_try_successor, true, false },
	[KYMO_TACTIC_NEIGHBOR] = { "evicted neighbor", x86_try_neighbor, true, false },
};

const char *kymo_tactic_name(enum kymo_tactic tactic)
{
	return tactics[tactic < KYMO_N_TACTICS ? tactic : KYMO_TACTIC_NONE].name;
}

/*
 * Where a function is entered, and others set breakpoints: what bears these comes first. Eviction changes more sites
 * than a group does. Still the kernel can go on at what follows the first byte's instruction.
 */
static const enum kymo_tactic shared_order[] = {
	KYMO_TACTIC_JUMP,      KYMO_TACTIC_PUN,      KYMO_TACTIC_PREFIX,
	KYMO_TACTIC_SUCCESSOR, KYMO_TACTIC_NEIGHBOR, KYMO_TACTIC_GROUP,
};

_Static_assert(kymo_countof(shared_order) == KYMO_N_TACTICS - 1, "each tactic has its place");

enum kymo_bearing kymo_plan_bears(const struct kymo_plan *plan)
{
	if (plan->patch_size == 1)
		return KYMO_BEARS_GONE;
	return plan->patch_size <= plan->insn_offset[1] ? KYMO_BEARS_SET : KYMO_BEARS_NOTHING;
}

static bool is_shared_entry(const struct x86_site *site)
{
	return site->room && site->room->shares_entries && site->vaddr == site->function->start && !site->code->is_jit;
}

/* From the best to `last`. */
static int try_up_to(struct x86_site *site, enum kymo_tactic last, struct kymo_plan *ret, size_t *n_ret,
		     struct kymo_refusal *refused, size_t *n_refused)
{
	const bool is_shared = is_shared_entry(site);

	site->budget = RESERVATIONS_MAX;
	if (is_shared && x86_try_first(site, ret, n_ret, &refused[0]) == 0)
		return 0;
	for (int i = 1; i < KYMO_N_TACTICS; i++) {
		const enum kymo_tactic tactic = is_shared ? shared_order[i - 1] : (enum kymo_tactic)i;
		struct kymo_plan plans[KYMO_PLANS_MAX];
		size_t n = 0;

		if (tactic > last || (tactics[tactic].needs_room && !site->room) ||
		    (site->code->is_jit && !tactics[tactic].is_alone))
			continue;
		site->budget = RESERVATIONS_MAX;
		if (tactics[tactic].try(site, plans, &n, &refused[*n_refused]) == 0) {
			memcpy(ret, plans, n * sizeof(*plans));
			*n_ret = n;
			return 0;
		}
		refused[(*n_refused)++].tactic = tactic;
	}
	return -EPERM;
}

/* A tactic that displaces nothing that may fault is preferred among the plain ones: the program may yet come to handle
 * faults. */
static int try_tactics(struct x86_site *site, struct kymo_plan *ret, size_t *n_ret, struct kymo_refusal *refused,
		       size_t *n_refused)
{
	unsigned int watched = site->watched_faults, possible = site->room ? site->room->possible_faults : 0;
	struct kymo_refusal unused;
	int err = -EPERM;

	site->watched_faults |= possible;
	if (site->watched_faults != watched && !x86_check_faults(site, &site->insn, &unused))
		err = try_up_to(site, KYMO_TACTIC_PUN, ret, n_ret, refused, n_refused);
	site->watched_faults = watched;
	if (!err)
		return 0;
	*n_refused = 0;
	return try_up_to(site, KYMO_N_TACTICS - 1, ret, n_ret, refused, n_refused);
}

int kymo_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map, const struct kymo_plan_room *room,
	      uint64_t vaddr, struct kymo_plan ret[KYMO_PLANS_MAX], size_t *n_ret, struct kymo_refusal *refusals,
	      size_t *n_refusals)
{
	struct x86_site site = {
		.code = code,
		.map = map,
		.room = room,
		.vaddr = vaddr,
		.watched_faults = room ? room->watched_faults : 0,
	};
	struct kymo_refusal refused[KYMO_N_TACTICS] = { 0 };
	size_t n = 0;
	int err;

	x86_decoder_init(&site.decoder);
	err = x86_find_insn(&site, &refused[0]);
	if (!err)
		err = x86_skip_endbr(&site, &refused[0]);
	if (!err)
		err = x86_check_site(&site, &refused[0]);
	if (err)
		n = 1;
	else
		err = try_tactics(&site, ret, n_ret, refused, &n);
	for (size_t i = 0; !err && i < *n_ret; i++) {
		ret[i].flags_are_dead = x86_flags_are_dead(map, ret[i].vaddr);
		ret[i].scratch = x86_scratch(map, &ret[i]);
	}
	if (refusals)
		memcpy(refusals, refused, n * sizeof(*refused));
	if (n_refusals)
		*n_refusals = n;
	return err;
}
