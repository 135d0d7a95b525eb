/*
 * Which of the branches that the sweep saw belong to code that runs. The rest may be strings and numbers between
 * the code, read as branches. They are in the map as well, since to displace less is always safe; but they are no
 * proof that what they lead to is code, or that what lies around it was misread.
 */
#include "arch/x86_64/firm.h"

#include <errno.h>

#include "arch/x86_64/entries.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"

#define ROUNDS_MAX \
	64 /* chains of blocks that are each entered from the next; longer ones are not made by compilers \
	    */

static int add_doubted(struct x86_builder *builder, struct x86_doubted doubted)
{
	if (doubted.function == X86_NO_FUNCTION || !x86_area_at(builder->map, doubted.target))
		return 0;
	return kymo_vec_push(&builder->doubted, doubted) ? 0 : -ENOMEM;
}

int x86_note_branch(struct x86_builder *builder, size_t function, uint64_t source, uint64_t target)
{
	if (function == X86_NO_FUNCTION || !builder->is_firm)
		return add_doubted(builder, (struct x86_doubted){ source, target, function, false });
	x86_mark(builder->map, X86_FIRM, target);
	return 0;
}

int x86_note_address(struct x86_builder *builder, size_t function, uint64_t source, uint64_t target)
{
	return add_doubted(builder, (struct x86_doubted){ source, target, function, true });
}

/* Whether something firm enters between the end of the flow and the source. */
static bool is_reached(const struct x86_builder *builder, const struct x86_doubted *doubted)
{
	const struct kymo_entry_map *map = builder->map;
	uint64_t start = builder->code->functions[doubted->function].start;
	uint64_t last;

	if (doubted->is_taken)
		return false;
	last = x86_last(map, 1u << X86_FIRM | 1u << X86_LIKELY | 1u << X86_STOPS, start, doubted->source);
	return last != UINT64_MAX && (x86_test(map, X86_FIRM, last) || x86_test(map, X86_LIKELY, last));
}

/* Make the marks of those that are `settled` firm, and forget them. True where there were any. */
static bool confirm_settled(struct x86_builder *builder,
			    bool (*settled)(const struct x86_builder *, const struct x86_doubted *))
{
	size_t n = builder->doubted.n, left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct x86_doubted doubted = builder->doubted.items[i];

		if (settled(builder, &doubted))
			x86_mark(builder->map, X86_FIRM, doubted.target);
		else
			builder->doubted.items[left++] = doubted;
	}
	builder->doubted.n = left;
	return left < n;
}

static bool is_branch(const struct x86_builder *builder, const struct x86_doubted *doubted)
{
	return !doubted->is_taken;
}

static bool is_in_computed(const struct x86_builder *builder, const struct x86_doubted *doubted)
{
	return builder->map->functions[doubted->function].computed;
}

void x86_firm_reached(struct x86_builder *builder)
{
	for (int round = 0; confirm_settled(builder, is_reached); round++) {
		if (round == ROUNDS_MAX)
			confirm_settled(builder, is_branch);
	}
}

bool x86_firm_computed(struct x86_builder *builder)
{
	if (!confirm_settled(builder, is_in_computed))
		return false;
	x86_firm_reached(builder);
	return true;
}
