/*
 * Which bytes are displaced for a probe, and why that is safe.
 *
 * A plan overwrites the KYMO_PATCH_SIZE bytes at a site with a jump, and hands the `window` bytes of the instructions
 * that were there to kymo_relocate(). Afterwards every execution must do what it did before. That holds when
 *
 *   1. the window consists of whole instructions of a function, as the processor meets them: the function decodes from
 *	its start, nothing enters it inside of an instruction, and something is known to lead to the site;
 *   2. nothing enters the window but at its first byte: not by a branch, table, pointer or landing pad (entries.c has
 *	the argument), and not by a return: calls are displaced as the last instruction or not at all;
 *   3. no thread can be asleep in the window with an address that it will use later, other than one whoever applies the
 *	plan can see and move: no system call is displaced (a restarted one goes back two bytes);
 *   4. each instruction does the same elsewhere (relocate.c), and none of the module reads the bytes that are replaced;
 *   5. the kernel does not abort into or out of it: no restartable sequence;
 *   6. nobody reads the bytes to learn what the code is: the signal return trampoline is known by them to unwinders;
 *   7. the jump is written in one piece: it lies in one page, because a longer copy may be cut short between two.
 *
 * A branch back to the first byte of the window is an execution of the site like any other: it stays a branch to the
 * site, and finds the jump there.
 *
 * Behind an instruction that ends the flow, bytes of the window are never run, but may be data that is read; so only
 * NOPs, which nobody reads, are displaced there.
 *
 * What a plan does not protect from: a program whose fault handler compares the PC with the address of an instruction
 * that was displaced (HotSpot's SafeFetch does), and shadow stacks where a call is displaced.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arch/x86_64/x86.h"

struct site {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	ZydisDecoder decoder;
	const struct kymo_extent *function;
	const struct x86_function *about; /* the function */
	uint64_t vaddr;
	struct x86_insn insn; /* the one at `vaddr` */
};

static int refuse(struct kymo_refusal *refusal, uint64_t vaddr, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct kymo_refusal *refusal, uint64_t vaddr, const char *format, ...)
{
	va_list args;

	refusal->vaddr = vaddr;
	va_start(args, format);
	vsnprintf(refusal->reason, sizeof(refusal->reason), format, args);
	va_end(args);
	return -EPERM;
}

/* ---- what holds for any tactic ----------------------------------------------------------------------------------- */

static int check_function(const struct site *site, struct kymo_refusal *refusal)
{
	uint64_t vaddr = site->vaddr, start = site->function->start, last;
	const unsigned int entered = 1u << X86_KNOWN | 1u << X86_LIKELY;

	if (!site->about->decodes)
		return refuse(refusal, site->about->bad,
			      "the function at 0x%lx has bytes at 0x%lx that are no instruction", start,
			      site->about->bad);
	if (site->about->bad)
		return refuse(
			refusal, site->about->bad,
			"control enters at 0x%lx, inside of an instruction: the function at 0x%lx may contain data",
			site->about->bad, start);
	if (!x86_test(site->map, X86_STARTS, vaddr))
		return refuse(refusal, vaddr, "no instruction begins at 0x%lx", vaddr);
	last = x86_last(site->map, entered | 1u << X86_STOPS, start, vaddr);
	if (last == UINT64_MAX || (!x86_test(site->map, X86_KNOWN, last) && !x86_test(site->map, X86_LIKELY, last)))
		return refuse(refusal, vaddr, "nothing is known to lead to 0x%lx: it may be data", vaddr);
	return 0;
}

static int decode(const struct site *site, uint64_t vaddr, struct x86_insn *ret)
{
	size_t size;
	const uint8_t *bytes = x86_text_at(site->map, vaddr, &size);

	if (!bytes || vaddr >= site->function->end)
		return -EINVAL;
	if (size > site->function->end - vaddr)
		size = (size_t)(site->function->end - vaddr);
	return x86_decode_full(&site->decoder, bytes, size, vaddr, ret);
}

static int check_rseq(const struct site *site, uint64_t low, uint64_t high, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < site->code->n_rseq; i++) {
		const struct kymo_extent *rseq = &site->code->rseq[i];

		if (low < rseq->end && rseq->start < high)
			return refuse(refusal, low,
				      "the %lu bytes from 0x%lx touch the restartable sequence from 0x%lx to 0x%lx",
				      high - low, low, rseq->start, rseq->end);
	}
	return 0;
}

/* mov $15,%eax (or %rax); syscall */
static bool is_signal_return(const struct site *site, const struct x86_insn *insn)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	size_t size;
	const uint8_t *bytes = x86_text_at(site->map, insn->address, &size);

	return (size >= sizeof(wide) && !memcmp(bytes, wide, sizeof(wide))) ||
	       (size >= sizeof(narrow) && !memcmp(bytes, narrow, sizeof(narrow)));
}

/* Whether the instruction, one of a window that starts at the site and ends at `end`, works when it is displaced. */
static int check_insn(const struct site *site, const struct x86_insn *insn, uint64_t end, struct kymo_refusal *refusal)
{
	const char *why = x86_cannot_move(insn);

	if (!why && x86_reads_code(insn, site->vaddr, end - site->vaddr))
		why = "reads the bytes that would be replaced";
	if (!why && is_signal_return(site, insn))
		why = "begins a signal return, which unwinders know by its bytes";
	if (why)
		return refuse(refusal, insn->address, "the instruction at 0x%lx %s", insn->address, why);
	return 0;
}

/* An endbr64 has to stay. What follows it runs as often, if it is not entered from elsewhere. */
static int skip_endbr(struct site *site, struct kymo_refusal *refusal)
{
	uint64_t next = site->vaddr + site->insn.length;

	if (site->insn.z.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
		return 0;
	if (next >= site->function->end || decode(site, next, &site->insn) < 0)
		return refuse(refusal, site->vaddr, "the function ends after the endbr64 at 0x%lx, which has to stay",
			      site->vaddr);
	if (kymo_entry_map_has(site->map, next))
		return refuse(refusal, next, "0x%lx, behind an endbr64 that has to stay, is entered from elsewhere too",
			      next);
	site->vaddr = next;
	return 0;
}

static int check_site(struct site *site, struct kymo_refusal *refusal)
{
	uint64_t vaddr = site->vaddr;
	ptrdiff_t function = x86_function_at(site->code, vaddr);
	int err;

	if (!x86_area_at(site->map, vaddr))
		return refuse(refusal, vaddr, "0x%lx is not in an executable section", vaddr);
	if (function < 0 || (size_t)function >= site->map->n_functions)
		return refuse(refusal, vaddr, "no function is known to contain 0x%lx", vaddr);
	site->function = &site->code->functions[function];
	site->about = &site->map->functions[function];
	err = check_function(site, refusal);
	if (err)
		return err;
	if (decode(site, vaddr, &site->insn) < 0)
		return refuse(refusal, vaddr, "no instruction begins at 0x%lx", vaddr);
	err = skip_endbr(site, refusal);
	if (!err)
		err = check_rseq(site, site->vaddr, site->vaddr + KYMO_PATCH_SIZE, refusal);
	if (!err)
		err = check_insn(site, &site->insn, site->vaddr + site->insn.length, refusal);
	if (!err && (site->vaddr & 4095) > 4096 - KYMO_PATCH_SIZE)
		err = refuse(refusal, site->vaddr, "the %d bytes at 0x%lx cross a page boundary", KYMO_PATCH_SIZE,
			     site->vaddr);
	return err;
}

/* ---- tactics ----------------------------------------------------------------------------------------------------- */

static void add_insn(struct kymo_plan *plan, const struct x86_insn *insn)
{
	plan->window = (uint8_t)(plan->window + insn->length);
	plan->insn_offset[++plan->n_insns] = plan->window;
	plan->ends_flow = x86_flow_ends(insn->flow) || x86_flow_is_call(insn->flow);
}

static int check_entries(const struct site *site, const struct kymo_plan *plan, struct kymo_refusal *refusal)
{
	for (uint64_t at = site->vaddr + 1; at < site->vaddr + plan->window; at++) {
		if (kymo_entry_map_has(site->map, at))
			return refuse(refusal, at, "control may enter at 0x%lx, inside of the %u bytes from 0x%lx", at,
				      plan->window, site->vaddr);
	}
	for (uint64_t at = site->vaddr; at < site->vaddr + plan->window; at++) {
		if (x86_test(site->map, X86_READ, at))
			return refuse(refusal, at, "0x%lx, one of the %u bytes from 0x%lx, is read as data", at,
				      plan->window, site->vaddr);
	}
	return check_rseq(site, site->vaddr, site->vaddr + plan->window, refusal);
}

static int try_jump(const struct site *site, struct kymo_plan *plan, struct kymo_refusal *refusal)
{
	add_insn(plan, &site->insn);
	if (plan->window < KYMO_PATCH_SIZE)
		return refuse(refusal, site->vaddr, "the instruction at 0x%lx has %u byte%s, a jump takes %d",
			      site->vaddr, plan->window, plan->window == 1 ? "" : "s", KYMO_PATCH_SIZE);
	return check_entries(site, plan, refusal);
}

/* Whether `insn` may follow `before` in a window. */
static int check_order(const struct x86_insn *before, const struct x86_insn *insn, struct kymo_refusal *refusal)
{
	if (x86_flow_is_call(before->flow))
		return refuse(refusal, before->address,
			      "the call at 0x%lx returns to 0x%lx, which would have to be replaced too",
			      before->address, insn->address);
	if (x86_flow_ends(before->flow) && insn->z.meta.category != ZYDIS_CATEGORY_NOP &&
	    insn->z.meta.category != ZYDIS_CATEGORY_WIDENOP)
		return refuse(refusal, insn->address, "nothing is known to lead to 0x%lx: it may be data",
			      insn->address);
	return 0;
}

static int gather(const struct site *site, struct kymo_plan *plan, struct kymo_refusal *refusal)
{
	struct x86_insn before, insn = site->insn;
	bool ended = false;

	for (;;) {
		uint64_t next = insn.address + insn.length;
		int err;

		add_insn(plan, &insn);
		if (plan->window >= KYMO_PATCH_SIZE)
			return 0;
		if (next >= site->function->end)
			return refuse(refusal, site->vaddr, "the function ends at 0x%lx, %u byte%s behind 0x%lx", next,
				      plan->window, plan->window == 1 ? "" : "s", site->vaddr);
		if (!ended)
			before = insn;
		ended = x86_flow_ends(before.flow);
		if (decode(site, next, &insn) < 0)
			return refuse(refusal, next, "no instruction begins at 0x%lx", next);
		err = check_order(&before, &insn, refusal);
		if (!err)
			err = check_insn(site, &insn, next + insn.length, refusal);
		if (err)
			return err;
	}
}

static int try_group(const struct site *site, struct kymo_plan *plan, struct kymo_refusal *refusal)
{
	int err;

	if (site->about->computed)
		return refuse(refusal, site->about->computed,
			      "the indirect branch at 0x%lx may lead anywhere in the function at 0x%lx",
			      site->about->computed, site->function->start);
	err = gather(site, plan, refusal);
	return err ? err : check_entries(site, plan, refusal);
}

/* Best first. */
static const struct {
	enum kymo_tactic tactic;
	const char *name;
	int (*try)(const struct site *site, struct kymo_plan *plan, struct kymo_refusal *refusal);
} tactics[] = {
	{ KYMO_TACTIC_JUMP, "jump", try_jump },
	{ KYMO_TACTIC_GROUP, "group", try_group },
};

#define N_TACTICS (sizeof(tactics) / sizeof(tactics[0]))

_Static_assert(N_TACTICS <= KYMO_N_TACTICS, "a caller has room for a refusal of each tactic");

const char *kymo_tactic_name(enum kymo_tactic tactic)
{
	for (size_t i = 0; i < N_TACTICS; i++) {
		if (tactics[i].tactic == tactic)
			return tactics[i].name;
	}
	return "none";
}

static void finish(const struct site *site, struct kymo_plan *plan)
{
	size_t size;
	const uint8_t *bytes = x86_text_at(site->map, site->vaddr, &size);

	plan->vaddr = site->vaddr;
	memcpy(plan->original, bytes, plan->window);
}

static int try_tactics(const struct site *site, struct kymo_plan *ret, struct kymo_refusal *refused, size_t *n)
{
	for (size_t i = 0; i < N_TACTICS; i++) {
		struct kymo_plan plan = { .tactic = tactics[i].tactic };

		if (tactics[i].try(site, &plan, &refused[*n]) == 0) {
			finish(site, &plan);
			*ret = plan;
			return 0;
		}
		refused[(*n)++].tactic = tactics[i].tactic;
	}
	return -EPERM;
}

int kymo_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr,
	      struct kymo_plan *ret, struct kymo_refusal *refusals, size_t *n_refusals)
{
	struct site site = { .code = code, .map = map, .vaddr = vaddr };
	struct kymo_refusal refused[KYMO_N_TACTICS] = { 0 };
	size_t n = 0;
	int err;

	x86_decoder_init(&site.decoder);
	err = check_site(&site, &refused[0]);
	if (err)
		n = 1;
	else
		err = try_tactics(&site, ret, refused, &n);
	if (refusals)
		memcpy(refusals, refused, n * sizeof(*refused));
	if (n_refusals)
		*n_refusals = n;
	return err;
}
