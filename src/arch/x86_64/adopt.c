/* A plan that another process wrote down: nothing in it is believed. */
#include <errno.h>
#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/faults.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "base/page.h"

static bool are_sizes_sane(const struct kymo_plan *plan)
{
	if (plan->tactic <= KYMO_TACTIC_NONE || plan->tactic >= KYMO_N_TACTICS || !plan->window ||
	    plan->window > KYMO_WINDOW_MAX || !plan->patch_size || plan->patch_size > KYMO_PATCH_MAX)
		return false;
	/* A plain jump may lie over padding after what it displaces. */
	if (plan->trampoline ? plan->patch_size > plan->window : plan->patch_size != KYMO_JUMP_SIZE)
		return false;
	return kymo_page_has(plan->vaddr, plan->patch_size) && plan->lock_size >= plan->patch_size;
}

int kymo_plan_window(const struct kymo_entry_map *map, struct kymo_plan *plan)
{
	struct kymo_plan found = *plan;
	ZydisDecoder decoder;
	size_t size, at = 0, changed = plan->window > plan->patch_size ? plan->window : plan->patch_size;
	const uint8_t *bytes;

	if (!are_sizes_sane(plan))
		return -EINVAL;
	bytes = x86_text_at(map, plan->vaddr, &size);
	if (!bytes || size < changed || memcmp(bytes, plan->original, changed) ||
	    !x86_test(map, X86_STARTS, plan->vaddr))
		return -EINVAL;
	x86_decoder_init(&decoder);
	for (found.n_insns = 0; at < plan->window; found.n_insns++) {
		struct x86_insn insn;

		if (found.n_insns == KYMO_WINDOW_MAX_INSNS ||
		    x86_decode_full(&decoder, bytes + at, plan->window - at, plan->vaddr + at, &insn))
			return -EINVAL;
		found.insn_offset[found.n_insns] = (uint8_t)at;
		at += insn.length;
		found.faults |= (uint8_t)x86_faults_anywhere(&insn);
		found.ends_flow = x86_flow_ends(insn.flow) || x86_flow_is_call(insn.flow);
	}
	found.insn_offset[found.n_insns] = found.window;
	found.flags_are_dead = x86_flags_are_dead(map, plan->vaddr);
	found.scratch = x86_scratch(map, &found);
	*plan = found;
	return 0;
}
