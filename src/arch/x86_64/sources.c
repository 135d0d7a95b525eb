/*
 * What leads into a function: what tells a part that the compiler split off, which only its own function enters and by
 * jumps alone, from a function. Code between functions counts as outside; but it may be data, and text is full of what
 * reads as short jumps, so that those are not believed.
 */
#include "arch/x86_64/sources.h"

#include "arch/x86_64/decode.h"
#include "arch/x86_64/entries.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"

static void add_source(uint32_t *from, size_t function)
{
	uint32_t source = function < X86_SEVERAL - 1 ? (uint32_t)function + 1 : X86_SEVERAL;

	*from = *from && *from != source ? X86_SEVERAL : source;
}

void x86_note_source(struct x86_builder *builder, size_t function, const struct x86_insn *branch)
{
	const struct kymo_extent *own = function == X86_NO_FUNCTION ? NULL : &builder->code->functions[function];
	bool is_own = own && branch->target >= own->start && branch->target < own->end;
	ptrdiff_t into = is_own ? (ptrdiff_t)function : x86_function_at(builder->code, branch->target);
	bool inside = into >= 0 && branch->target != builder->code->functions[into].start;
	struct x86_function *self;

	if (into < 0 || (function == X86_NO_FUNCTION && branch->z.raw.imm[0].size < 32))
		return;
	self = &builder->map->functions[into];
	if (branch->flow == X86_FLOW_CALL && ((size_t)into != function || !inside))
		self->called = true;
	if ((size_t)into == function)
		return;
	if (branch->flow != X86_FLOW_CALL)
		add_source(&self->jumped_from, function);
	if (!inside)
		return;
	add_source(&self->entered_from, function);
	x86_mark(builder->map, X86_ENTERED, branch->target);
}

void x86_note_taken(struct x86_builder *builder, size_t function, uint64_t target)
{
	ptrdiff_t into = x86_area_at(builder->map, target) ? x86_function_at(builder->code, target) : -1;

	if (into >= 0 && (size_t)into != function)
		builder->map->functions[into].called = true;
}
