/*
 * Text between functions: what of it is code. Files keep tables there, and assembler without a name.
 *
 * Code is what control arrives at from an address that something is known to lead to. Some of those are addresses of
 * tables, too; what follows there is decoded and soon no instruction, or the end of a flow.
 */
#include "arch/x86_64/gaps.h"

#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "base/vec.h"

struct gap {
	const struct kymo_entry_map *map;
	ZydisDecoder decoder;
	uint64_t low, high;
	uint8_t *seen; /* a byte for each */
	KYMO_VEC(uint64_t) todo;
};

static bool add_to_gap(struct gap *gap, uint64_t at)
{
	return at < gap->low || at >= gap->high || gap->seen[at - gap->low] || kymo_vec_push(&gap->todo, at);
}

/* Mark the instructions from `at` on, and put aside where they lead. False when memory is out. */
static bool follow_gap(struct gap *gap, uint64_t at)
{
	struct x86_insn insn = { .flow = X86_FLOW_NEXT };

	for (; at < gap->high && !gap->seen[at - gap->low] && !x86_flow_ends(insn.flow); at += insn.length) {
		size_t size;
		const uint8_t *bytes = x86_text_at(gap->map, at, &size);

		if (!bytes || x86_decode_full(&gap->decoder, bytes, size, at, &insn))
			return true;
		gap->seen[at - gap->low] = 1;
		if (insn.has_target && !add_to_gap(gap, insn.target))
			return false;
	}
	return true;
}

static bool walk_gap(struct gap *gap)
{
	const unsigned int entered = 1u << X86_FIRM | 1u << X86_LIKELY;

	for (uint64_t at = gap->high - 1; (at = x86_last(gap->map, entered, gap->low, at)) != UINT64_MAX; at--) {
		if (!add_to_gap(gap, at))
			return false;
		if (at == gap->low)
			break;
	}
	while (gap->todo.n)
		if (!follow_gap(gap, gap->todo.items[--gap->todo.n]))
			return false;
	return true;
}

static int find_gap(const struct kymo_module_code *code, const struct kymo_span *span, uint64_t vaddr,
		    struct x86_gap *ret)
{
	uint64_t low = span->vaddr, high = span->vaddr + span->size;

	/* Functions may overlap: nothing is known of their ends' order. */
	for (size_t i = 0; i < code->n_functions; i++) {
		const struct kymo_extent *function = &code->functions[i];

		if (function->end <= vaddr && function->end > low)
			low = function->end;
		if (function->start > vaddr && function->start < high)
			high = function->start;
	}
	*ret = (struct x86_gap){ .low = low, .high = high, .is_code = calloc(high - low, 1) };
	return ret->is_code ? 0 : -ENOMEM;
}

int x86_gap_at(const struct kymo_module_code *code, const struct kymo_entry_map *map, const struct kymo_span *span,
	       uint64_t vaddr, struct x86_gap *ret)
{
	struct gap gap = { .map = map };
	struct x86_gap found;
	int err = find_gap(code, span, vaddr, &found);
	bool done;

	if (err)
		return err;
	gap.low = found.low;
	gap.high = found.high;
	gap.seen = found.is_code;
	x86_decoder_init(&gap.decoder);
	done = walk_gap(&gap);
	kymo_vec_deinit(&gap.todo);
	if (!done) {
		free(found.is_code);
		return -ENOMEM;
	}
	*ret = found;
	return 0;
}
