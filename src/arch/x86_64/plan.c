/*
 * Which bytes are displaced for a probe, and why that is safe.
 *
 * A plan overwrites bytes at a site with a jump, and hands the `window` bytes of the instructions that were there
 * to kymo_relocate(). Afterwards every execution must do what it did before. For one instruction (pun.c, evict.c)
 * that holds when
 *
 *   1. it is one, as the processor meets it: the function decodes from its start, nothing enters it inside of an
 *	instruction, and something is known to lead to the site;
 *   2. it does the same elsewhere (relocate.c), and none of the module reads the bytes that are replaced;
 *   3. the kernel does not abort into or out of it: no restartable sequence;
 *   4. nobody knows the code by its bytes or its address: unwinders know the signal return trampoline, C libraries the
 *	system call at which a thread may be cancelled;
 *   5. the bytes are written in one piece: they lie in one page, because a longer copy may be cut short between two;
 *   6. the stack has room for the pad (stacks.c).
 *
 * For several at once (group) also when
 *
 *   7. nothing enters the window but at its first byte: not by a branch, table, pointer or landing pad (entries.c has
 *	the argument), and not by a return: calls are displaced as the last instruction or not at all;
 *   8. no thread can be asleep in the window with an address that it will use later, other than one whoever applies the
 *	plan can see and move: no system call is displaced with others (a restarted one goes back two bytes).
 *
 * A branch back to the first byte of the window is an execution of the site like any other: it stays a branch to the
 * site, and finds the jump there.
 *
 * Behind an instruction that ends the flow, bytes of the window are never run, but may be data that is read; so
 * only NOPs, which nobody reads, are displaced there. Behind the end of a function a jump may also lie on padding:
 * NOPs, int3 or zeros and nothing else up to the next function.
 *
 * Code that the program has made (made.c) is not known but for its bytes: one instruction is displaced, what follows is left alone, and 1 is
 * the word of whoever names the place.
 *
 * Where the process handles faults, nothing is displaced that may cause one (faults.c): a handler that looks the PC up finds it in its place.
 *
 * What a plan does not protect from: a program that comes to handle faults later, as far as the caller does not plan it anew; and shadow stacks
 * where a call is displaced.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arch/x86_64/plan.h"

#define RESERVATIONS_MAX 4000u /* addresses asked for by one tactic at the most */

int x86_refuse(struct kymo_refusal *refusal, uint64_t vaddr, const char *format, ...)
{
	va_list args;

	refusal->vaddr = vaddr;
	va_start(args, format);
	vsnprintf(refusal->reason, sizeof(refusal->reason), format, args);
	va_end(args);
	return -EPERM;
}

/* ---- what holds for any tactic ----------------------------------------------------------------------------------- */

int x86_decode_in(const struct x86_site *site, uint64_t vaddr, struct x86_insn *ret)
{
	size_t size;
	const uint8_t *bytes = x86_text_at(site->map, vaddr, &size);

	if (!bytes || vaddr >= site->function->end)
		return -EINVAL;
	if (size > site->function->end - vaddr)
		size = (size_t)(site->function->end - vaddr);
	return x86_decode_full(&site->decoder, bytes, size, vaddr, ret);
}

bool x86_is_nop(const struct x86_insn *insn)
{
	return insn->z.meta.category == ZYDIS_CATEGORY_NOP || insn->z.meta.category == ZYDIS_CATEGORY_WIDENOP;
}

/* Whether all from `stop`, behind an instruction that ends the flow, to the site are NOPs: padding, which nobody
 * reads. */
static bool is_behind_nops(const struct x86_site *site, uint64_t stop)
{
	struct x86_insn insn = { .length = 0 };

	if (stop == UINT64_MAX)
		return false;
	for (uint64_t at = stop; at <= site->vaddr; at += insn.length) {
		if (x86_decode_in(site, at, &insn) < 0 || !x86_is_nop(&insn))
			return false;
	}
	return true;
}

static int check_function(const struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t vaddr = site->vaddr, start = site->function->start, last;
	const unsigned int entered = 1u << X86_FIRM | 1u << X86_LIKELY;

	if (!site->about->decodes)
		return x86_refuse(refusal, site->about->bad,
			      "the function at 0x%lx has bytes at 0x%lx that are no instruction", start,
			      site->about->bad);
	if (site->about->bad)
		return x86_refuse(
			refusal, site->about->bad,
			"control enters at 0x%lx, inside of an instruction: the function at 0x%lx may contain data",
			site->about->bad, start);
	if (!x86_test(site->map, X86_STARTS, vaddr))
		return x86_refuse(refusal, vaddr, "no instruction begins at 0x%lx", vaddr);
	last = x86_last(site->map, entered | 1u << X86_STOPS, start, vaddr);
	if ((last == UINT64_MAX ||
	     (!x86_test(site->map, X86_FIRM, last) && !x86_test(site->map, X86_LIKELY, last))) &&
	    !is_behind_nops(site, last))
		return x86_refuse(refusal, vaddr, "nothing is known to lead to 0x%lx: it may be data", vaddr);
	return 0;
}

int x86_check_rseq(const struct x86_site *site, uint64_t low, uint64_t high, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < site->code->n_rseq; i++) {
		const struct kymo_extent *rseq = &site->code->rseq[i];

		if (low < rseq->end && rseq->start < high)
			return x86_refuse(refusal, low,
					  "the %lu bytes from 0x%lx touch the restartable sequence from 0x%lx to 0x%lx",
					  high - low, low, rseq->start, rseq->end);
	}
	return 0;
}

/* Whether `size` bytes of the text at `vaddr` are these. */
static bool has_bytes(const struct x86_site *site, uint64_t vaddr, const void *bytes, size_t size)
{
	size_t available;
	const uint8_t *text = x86_text_at(site->map, vaddr, &available);

	return text && available >= size && !memcmp(text, bytes, size);
}

/* Whether the instruction is one of mov $15,%eax (or %rax); syscall */
static bool is_signal_return(const struct x86_site *site, const struct x86_insn *insn)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	uint64_t at = insn->address;

	if (has_bytes(site, at, wide, sizeof(wide)) || has_bytes(site, at, narrow, sizeof(narrow)))
		return true;
	return insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL &&
	       (has_bytes(site, at - 7, wide, sizeof(wide)) || has_bytes(site, at - 5, narrow, sizeof(narrow)));
}

/*
 * Whether a cancellable system call is at `vaddr`, or follows in the function within some instructions. musl's
 * __syscall_cp_asm and glibc's __syscall_cancel_arch (2.41) load the last two of their eight arguments right
 * before the call; the signal handler that cancels a thread asks whether it stands between the start of this code
 * and the end of the call.
 */
static bool is_cancellable(const struct x86_site *site, uint64_t vaddr)
{
	static const uint8_t loads[] = { 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24, 0x10 };
	static const uint8_t call[] = { 0x0f, 0x05 }, store_call[] = { 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05 };
	const uint64_t before = sizeof(loads) + sizeof(store_call), after = 48;

	for (uint64_t at = vaddr - before; at != vaddr + after && at != site->function->end; at++) {
		uint64_t next = at + sizeof(loads);
		bool is_plain;

		if (!has_bytes(site, at, loads, sizeof(loads)))
			continue;
		is_plain = has_bytes(site, next, call, sizeof(call));
		if (!is_plain && !has_bytes(site, next, store_call, sizeof(store_call)))
			continue;
		if (vaddr < next + (is_plain ? sizeof(call) : sizeof(store_call)))
			return true;
	}
	return false;
}

bool x86_is_locked(const struct x86_site *site, uint64_t vaddr, uint64_t size)
{
	return site->room && site->room->is_locked(site->room->data, vaddr, (size_t)size);
}

/* Whether the instruction, one of a window that starts at the site and ends at `end`, works when it is displaced. */
int x86_check_insn(const struct x86_site *site, const struct x86_insn *insn, uint64_t end, bool alone,
		      struct kymo_refusal *refusal)
{
	const char *why = alone ? x86_cannot_move_alone(insn) : x86_cannot_move(insn);

	if (!why && x86_reads_code(insn, site->vaddr, end - site->vaddr))
		why = "reads the bytes that would be replaced";
	if (!why && is_signal_return(site, insn))
		why = "belongs to a signal return, which unwinders know by its bytes";
	if (!why && is_cancellable(site, insn->address))
		why = "leads to a system call at which threads are cancelled, known by its address";
	if (why)
		return x86_refuse(refusal, insn->address, "the instruction at 0x%lx %s", insn->address, why);
	return 0;
}

/* An endbr64 has to stay. What follows it runs as often, if it is not entered from elsewhere. */
static int skip_endbr(struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t next = site->vaddr + site->insn.length;

	if (site->insn.z.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
		return 0;
	if (next >= site->function->end || x86_decode_in(site, next, &site->insn) < 0)
		return x86_refuse(refusal, site->vaddr,
				  "the function ends after the endbr64 at 0x%lx, which has to stay", site->vaddr);
	if (kymo_entry_map_has(site->map, next))
		return x86_refuse(refusal, next,
				  "0x%lx, behind an endbr64 that has to stay, is entered from elsewhere too", next);
	site->vaddr = next;
	return 0;
}

/* Whether there is an instruction at `site->vaddr`: `function`, `about` and `insn` are known then. */
static int find_insn(struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t vaddr = site->vaddr;
	ptrdiff_t function = x86_function_at(site->code, vaddr);
	int err;

	if (!x86_area_at(site->map, vaddr))
		return x86_refuse(refusal, vaddr, "0x%lx is not in an executable section", vaddr);
	if (function < 0 || (size_t)function >= site->map->n_functions)
		return x86_refuse(refusal, vaddr, "no function is known to contain 0x%lx", vaddr);
	site->function = &site->code->functions[function];
	site->about = &site->map->functions[function];
	err = check_function(site, refusal);
	if (!err && x86_decode_in(site, vaddr, &site->insn) < 0)
		err = x86_refuse(refusal, vaddr, "no instruction begins at 0x%lx", vaddr);
	return err;
}

/* What holds for any tactic. */
static int check_site(const struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t end = site->vaddr + site->insn.length;
	int err = x86_check_rseq(site, site->vaddr, end, refusal);

	if (!err)
		err = x86_check_insn(site, &site->insn, end, true, refusal);
	if (!err)
		err = x86_check_faults(site, &site->insn, refusal);
	if (!err)
		err = x86_check_stack(site, refusal);
	if (!err)
		err = x86_check_made(site, site->insn.length, refusal);
	if (!err && x86_is_locked(site, site->vaddr, 1))
		err = x86_refuse(refusal, site->vaddr, "another probe has taken 0x%lx, or relies on what is there",
				 site->vaddr);
	return err;
}

int x86_find_evictable(const struct x86_site *site, uint64_t vaddr, struct x86_site *ret, struct kymo_refusal *refusal)
{
	struct x86_site found = {
		.code = site->code,
		.map = site->map,
		.room = site->room,
		.decoder = site->decoder,
		.watched_faults = site->watched_faults,
	};
	int err;

	found.vaddr = vaddr;
	err = find_insn(&found, refusal);
	if (!err)
		err = check_site(&found, refusal);
	if (err)
		return err;
	if (found.insn.z.mnemonic == ZYDIS_MNEMONIC_SYSCALL || found.insn.z.mnemonic == ZYDIS_MNEMONIC_INT)
		return x86_refuse(refusal, vaddr,
				  "the instruction at 0x%lx, which would have to make room, is a system call", vaddr);
	if (x86_is_locked(&found, vaddr, found.insn.length))
		return x86_refuse(refusal, vaddr, "another probe wants the instruction at 0x%lx, or relies on it",
				  vaddr);
	*ret = found;
	return 0;
}

unsigned int x86_changeable(const struct x86_site *site)
{
	unsigned int n = 0;

	for (; n < site->insn.length; n++) {
		uint64_t at = site->vaddr + n;

		if (n && (!(at & 4095) || kymo_entry_map_has(site->map, at)))
			break;
		if (x86_test(site->map, X86_READ, at) || x86_is_locked(site, at, 1))
			break;
	}
	return n;
}

int x86_refuse_fixed(const struct x86_site *site, struct kymo_refusal *refusal)
{
	if (x86_test(site->map, X86_READ, site->vaddr))
		return x86_refuse(refusal, site->vaddr, "0x%lx is read as data", site->vaddr);
	return x86_refuse(refusal, site->vaddr, "another probe has taken 0x%lx, or relies on what is there",
			  site->vaddr);
}

/* ---- all tactics ------------------------------------------------------------------------------------------------- */

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
	[KYMO_TACTIC_NEIGHBOUR] = { "evicted neighbour", x86_try_neighbour, true, false },
};

const char *kymo_tactic_name(enum kymo_tactic tactic)
{
	return tactics[tactic < KYMO_N_TACTICS ? tactic : KYMO_TACTIC_NONE].name;
}

/*
 * Where a function is entered, and others set breakpoints: what bears these comes first. Eviction changes more places than a group does, and still all that is behind
 * the first byte's instruction remains one that the kernel can go on at.
 */
static const enum kymo_tactic shared_order[] = {
	KYMO_TACTIC_JUMP, KYMO_TACTIC_PUN, KYMO_TACTIC_PREFIX, KYMO_TACTIC_SUCCESSOR, KYMO_TACTIC_NEIGHBOUR, KYMO_TACTIC_GROUP,
};

_Static_assert(sizeof(shared_order) / sizeof(*shared_order) == KYMO_N_TACTICS - 1, "each tactic has its place");

enum kymo_bearing kymo_plan_bears(const struct kymo_plan *plan)
{
	if (plan->patch_size == 1)
		return KYMO_BEARS_GONE;
	return plan->patch_size <= plan->insn_offset[1] ? KYMO_BEARS_SET : KYMO_BEARS_NOTHING;
}

static bool is_shared_entry(const struct x86_site *site)
{
	return site->room && site->room->shares_entries && site->vaddr == site->function->start && !site->code->is_made;
}

/* From the best to `last`. */
static int try_up_to(struct x86_site *site, enum kymo_tactic last, struct kymo_plan *ret, size_t *n_ret, struct kymo_refusal *refused,
		     size_t *n_refused)
{
	const bool is_shared = is_shared_entry(site);

	site->budget = RESERVATIONS_MAX;
	if (is_shared && x86_try_first(site, ret, n_ret, &refused[0]) == 0)
		return 0;
	for (int i = 1; i < KYMO_N_TACTICS; i++) {
		const enum kymo_tactic tactic = is_shared ? shared_order[i - 1] : (enum kymo_tactic)i;
		struct kymo_plan plans[KYMO_PLANS_MAX];
		size_t n = 0;

		if (tactic > last || (tactics[tactic].needs_room && !site->room) || (site->code->is_made && !tactics[tactic].is_alone))
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

/* One that displaces nothing that may fault is preferred among the plain ones: such a program may yet come to handle faults. */
static int try_tactics(struct x86_site *site, struct kymo_plan *ret, size_t *n_ret, struct kymo_refusal *refused, size_t *n_refused)
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
	err = find_insn(&site, &refused[0]);
	if (!err)
		err = skip_endbr(&site, &refused[0]);
	if (!err)
		err = check_site(&site, &refused[0]);
	if (err)
		n = 1;
	else
		err = try_tactics(&site, ret, n_ret, refused, &n);
	for (size_t i = 0; !err && i < *n_ret; i++)
		ret[i].flags_are_dead = x86_flags_are_dead(map, ret[i].vaddr);
	if (refusals)
		memcpy(refusals, refused, n * sizeof(*refused));
	if (n_refusals)
		*n_refusals = n;
	return err;
}
