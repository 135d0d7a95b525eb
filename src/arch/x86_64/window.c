/* Plain jumps: over one instruction of five bytes or more, or over several that are displaced together. */
#include "arch/x86_64/window.h"

#include <errno.h>
#include <string.h>

#include "arch/x86_64/check.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/faults.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "base/page.h"

#define PADDING_MAX 64u /* between functions */

static void add_insn(const struct x86_site *site, struct kymo_plan *plan, const struct x86_insn *insn)
{
	plan->faults |= (uint8_t)x86_faults(site, insn);
	plan->window = (uint8_t)(plan->window + insn->length);
	plan->insn_offset[++plan->n_insns] = plan->window;
	plan->ends_flow = x86_flow_ends(insn->flow) || x86_flow_is_call(insn->flow);
}

/* What the bytes of a plain jump and its window have to be. */
static int check_window(const struct x86_site *site, const struct kymo_plan *plan, struct kymo_refusal *refusal)
{
	unsigned int size = plan->window > KYMO_JUMP_SIZE ? plan->window : KYMO_JUMP_SIZE;

	if (!kymo_page_has(site->vaddr, KYMO_JUMP_SIZE))
		return x86_refuse(refusal, site->vaddr, "the %d bytes at 0x%lx cross a page boundary", KYMO_JUMP_SIZE,
				  site->vaddr);
	for (uint64_t at = site->vaddr + 1; at < site->vaddr + size; at++) {
		if (kymo_entry_map_has(site->map, at))
			return x86_refuse(refusal, at, "control may enter at 0x%lx, inside of the %u bytes from 0x%lx",
					  at, size, site->vaddr);
	}
	for (uint64_t at = site->vaddr; at < site->vaddr + size; at++) {
		if (x86_test(site->map, X86_READ, at))
			return x86_refuse(refusal, at, "0x%lx, one of the %u bytes from 0x%lx, is read as data", at,
					  size, site->vaddr);
		if (x86_is_locked(site, at, 1))
			return x86_refuse(refusal, at,
					  "another probe wants 0x%lx, one of the %u bytes from 0x%lx, or relies on it",
					  at, size, site->vaddr);
	}
	return x86_check_rseq(site, site->vaddr, site->vaddr + size, refusal);
}

/* Check the window that was gathered; it becomes the one plan. */
static int take_window(const struct x86_site *site, struct kymo_plan *plan, struct kymo_plan *plans, size_t *n,
		       struct kymo_refusal *refusal)
{
	const unsigned int size = plan->window > KYMO_JUMP_SIZE ? plan->window : KYMO_JUMP_SIZE;
	const int err = check_window(site, plan, refusal);
	size_t available;

	if (err)
		return err;
	plan->vaddr = site->vaddr;
	plan->patch_size = KYMO_JUMP_SIZE;
	plan->lock_size = (uint8_t)size;
	memcpy(plan->original, x86_text_at(site->map, site->vaddr, &available), size);
	plans[0] = *plan;
	*n = 1;
	return 0;
}

int x86_try_jump(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	struct kymo_plan plan = { .tactic = KYMO_TACTIC_JUMP };

	add_insn(site, &plan, &site->insn);
	if (plan.window < KYMO_JUMP_SIZE)
		return x86_refuse(refusal, site->vaddr, "the instruction at 0x%lx has %u byte%s, a jump takes %d",
				  site->vaddr, plan.window, plan.window == 1 ? "" : "s", KYMO_JUMP_SIZE);
	return take_window(site, &plan, plans, n, refusal);
}

/* The end of what lies between the site's function and the next one. */
static uint64_t gap_end(const struct x86_site *site)
{
	const struct x86_area *area = x86_area_at(site->map, site->vaddr);
	const struct kymo_extent *next = site->function + 1;
	uint64_t end = area->span.vaddr + area->span.size;

	return next < site->code->functions + site->code->n_functions && next->start < end ? next->start : end;
}

/* The instruction at `vaddr`, after the function's end, if it is a NOP. */
static bool decode_nop(const struct x86_site *site, uint64_t vaddr, struct x86_insn *ret)
{
	uint64_t end = gap_end(site);
	size_t size;
	const uint8_t *bytes = vaddr < end ? x86_text_at(site->map, vaddr, &size) : NULL;

	return bytes && !x86_decode_full(&site->decoder, bytes, (size_t)(end - vaddr), vaddr, ret) && x86_is_nop(ret);
}

/* Whether there is padding and nothing else from the function's end to the next, and `size` bytes of it at least. */
static bool is_padded(const struct x86_site *site, uint64_t size)
{
	uint64_t start = site->function->end, end = gap_end(site);
	size_t available;
	const uint8_t *bytes = start < end ? x86_text_at(site->map, start, &available) : NULL;
	bool same = bytes && (bytes[0] == 0xcc || bytes[0] == 0);
	struct x86_insn insn;

	if (!bytes || end - start < size || end - start > PADDING_MAX)
		return false;
	for (uint64_t i = 1; i < end - start; i++)
		same &= bytes[i] == bytes[0];
	if (same)
		return true;
	for (uint64_t at = start; at < end; at += insn.length) {
		if (!decode_nop(site, at, &insn))
			return false;
	}
	return true;
}

/* Whether `insn` may follow `before` in a window. */
static int check_order(const struct x86_insn *before, const struct x86_insn *insn, struct kymo_refusal *refusal)
{
	if (x86_flow_is_call(before->flow))
		return x86_refuse(refusal, before->address,
				  "the call at 0x%lx returns to 0x%lx, which would have to be replaced too",
				  before->address, insn->address);
	if (x86_flow_ends(before->flow) && !x86_is_nop(insn))
		return x86_refuse(refusal, insn->address, "nothing is known to lead to 0x%lx: it may be data",
				  insn->address);
	return 0;
}

/* The function is over, and the window not full yet. `before` is the last instruction that runs. True where the
 * jump may lie on what follows: what may run is displaced, and what cannot is not. */
static bool gather_padding(const struct x86_site *site, struct kymo_plan *plan, const struct x86_insn *before)
{
	struct x86_insn insn;

	if (x86_flow_is_call(before->flow))
		return false;
	if (x86_flow_ends(before->flow)) {
		plan->window = (uint8_t)(before->address + before->length - site->vaddr);
		while (plan->insn_offset[plan->n_insns] > plan->window)
			plan->insn_offset[plan->n_insns--] = 0;
		plan->ends_flow = true;
		return is_padded(site, site->vaddr + KYMO_JUMP_SIZE - site->function->end);
	}
	while (plan->window < KYMO_JUMP_SIZE) {
		if (!decode_nop(site, site->vaddr + plan->window, &insn))
			return false;
		add_insn(site, plan, &insn);
	}
	return true;
}

static int gather_insns(const struct x86_site *site, struct kymo_plan *plan, struct kymo_refusal *refusal)
{
	struct x86_insn before, insn = site->insn;
	bool ended = false;

	for (;;) {
		uint64_t next = insn.address + insn.length;
		int err = x86_check_insn(site, &insn, next, false, refusal);

		if (!err)
			err = x86_check_faults(site, &insn, refusal);
		if (err)
			return err;
		add_insn(site, plan, &insn);
		if (!ended)
			before = insn;
		ended = x86_flow_ends(before.flow);
		if (plan->window >= KYMO_JUMP_SIZE)
			return 0;
		if (next >= site->function->end) {
			if (gather_padding(site, plan, &before))
				return 0;
			return x86_refuse(refusal, site->vaddr,
					  "the function ends at 0x%lx, %lu byte%s after 0x%lx, and no padding follows",
					  next, next - site->vaddr, next - site->vaddr == 1 ? "" : "s", site->vaddr);
		}
		if (x86_decode_in(site, next, &insn) < 0)
			return x86_refuse(refusal, next, "no instruction begins at 0x%lx", next);
		err = check_order(&before, &insn, refusal);
		if (err)
			return err;
	}
}

int x86_try_group(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	struct kymo_plan plan = { .tactic = KYMO_TACTIC_GROUP };
	int err;

	if (site->room && site->room->is_alone)
		return x86_refuse(
			refusal, site->vaddr,
			"threads may be on their way back to any instruction after 0x%lx, from earlier probes",
			site->vaddr);
	if (site->about->computed)
		return x86_refuse(refusal, site->about->computed,
				  "the indirect branch at 0x%lx may lead anywhere in the function at 0x%lx",
				  site->about->computed, site->function->start);
	err = gather_insns(site, &plan, refusal);
	return err ? err : take_window(site, &plan, plans, n, refusal);
}
