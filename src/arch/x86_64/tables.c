/*
 * Jump tables. Compilers make two kinds:
 *
 *   relative	lea T(%rip),B; movslq (B,I,4),R; add B,R; jmp *R: 32-bit distances from the table's own start
 *   absolute	jmp *T(,I,8), or jmp *(B,I,8): whole addresses, which have relocations if the module can move
 *
 * Nothing says where a table ends. A relative one is read from each address that any code of the module takes, while T
 * + entry lies in the text; since all entries of a true table do, none is missed, and reading on beyond its end only
 * adds marks. Reading ends at a table that a jump was seen to use: tables do not overlap. Marks are X86_LIKELY from the
 * next address taken on. That may be the end of this table, or an array's imagined element -1 inside of it. They are
 * also X86_LIKELY wherever an entry leaves the function that takes the address, into its .cold part or because the
 * table is over. Absolute entries are found by their relocations, which the caller hands in, and in position-dependent
 * modules by scan.c; here only those that lie between code.
 *
 * Hand-written code has a third kind, of distances from another address than the table's own: libc's printf. Those are
 * read if a jump is seen to use both, and are LIKELY. The jump still counts as one that may lead anywhere.
 */
#include "arch/x86_64/tables.h"

#include <errno.h>
#include <string.h>

#include "arch/x86_64/entries.h"
#include "arch/x86_64/jumps.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "base/search.h"

static const struct kymo_span *span_at(const struct kymo_span *spans, size_t n, uint64_t vaddr)
{
	size_t behind = kymo_partition_point(i, n, spans[i].vaddr <= vaddr);

	return behind && vaddr - spans[behind - 1].vaddr < spans[behind - 1].size ? &spans[behind - 1] : NULL;
}

static bool has(const uint64_t *sorted, size_t n, uint64_t vaddr)
{
	return n && bsearch(&vaddr, sorted, n, sizeof(*sorted), kymo_compare_u64);
}

bool x86_has_table(void *closure, uint64_t vaddr)
{
	const struct x86_builder *builder = closure;

	return has(builder->tables.items, builder->tables.n, vaddr);
}

void x86_jumps_init(struct x86_builder *builder, struct x86_jumps *ret)
{
	*ret = (struct x86_jumps){
		.code = builder->code,
		.map = builder->map,
		.decoder = builder->decoder,
		.has_table = x86_has_table,
		.closure = builder,
		.summary_of = -1,
	};
}

static int find_sure(struct x86_builder *builder)
{
	struct x86_jumps jumps;
	uint64_t table;

	x86_jumps_init(builder, &jumps);
	for (size_t i = 0; i < builder->indirect.n; i++) {
		const struct x86_indirect *indirect = &builder->indirect.items[i];

		if ((x86_jump_table(&jumps, indirect->function, indirect->vaddr, &table) ||
		     x86_jump_absolute(&jumps, indirect->vaddr, &table)) &&
		    !kymo_vec_push(&builder->sure, table))
			return -ENOMEM;
	}
	if (builder->sure.n)
		qsort(builder->sure.items, builder->sure.n, sizeof(uint64_t), kymo_compare_u64);
	return 0;
}

static bool in_text_or_at_its_end(const struct kymo_entry_map *map, uint64_t vaddr)
{
	/* A default case that is unreachable may be labeled at the very end of the text. */
	return x86_area_at(map, vaddr) || x86_area_at(map, vaddr - 1);
}

/* Read the relative table at `taken`; returns the number of entries, or -EFBIG. */
static int64_t read_relative(struct x86_builder *builder, const struct x86_taken *taken, const struct kymo_span *span,
			     bool in_data, uint64_t next)
{
	uint64_t at = taken->target;
	int64_t n = 0;

	for (; span->size - (at - span->vaddr) >= 4; at += 4, n++) {
		bool certain = in_data && taken->by_lea && at < next && taken->function != X86_NO_FUNCTION;
		uint64_t target;
		int32_t entry;

		if (n && has(builder->sure.items, builder->sure.n, at))
			break;
		memcpy(&entry, span->bytes + (at - span->vaddr), sizeof(entry));
		target = taken->target + (uint64_t)entry;
		if (!in_text_or_at_its_end(builder->map, target))
			break;
		if (!builder->budget--)
			return -EFBIG;
		certain = certain && x86_function_at(builder->code, target) == (ptrdiff_t)taken->function;
		if (certain)
			x86_mark_entered(builder->map, target);
		else
			x86_mark(builder->map, X86_LIKELY, target);
		if (at + 4 - span->vaddr >= span->size)
			return n + 1;
	}
	return n;
}

/* Absolute entries between code of a position-dependent module. */
static int read_absolute(struct x86_builder *builder, uint64_t at, const struct kymo_span *span)
{
	for (; at - span->vaddr < span->size && span->size - (at - span->vaddr) >= 8; at += 8) {
		uint64_t target;

		memcpy(&target, span->bytes + (at - span->vaddr), sizeof(target));
		if (!x86_area_at(builder->map, target))
			break;
		if (!builder->budget--)
			return -EFBIG;
		x86_mark(builder->map, X86_LIKELY, target);
	}
	return 0;
}

static int read_jump_tables(struct x86_builder *builder, const struct x86_taken *taken, uint64_t next)
{
	const struct kymo_span *data = span_at(builder->data, builder->code->n_data, taken->target);
	const struct x86_area *area = x86_area_at(builder->map, taken->target);
	int64_t n;

	if (!data && !area)
		return 0;
	n = read_relative(builder, taken, data ? data : &area->span, data, next);
	if (n < 0)
		return (int)n;
	if (n > 0) {
		if (taken->function != X86_NO_FUNCTION)
			builder->map->functions[taken->function].n_tables++;
		if ((!builder->tables.n || builder->tables.items[builder->tables.n - 1] != taken->target) &&
		    !kymo_vec_push(&builder->tables, taken->target))
			return -ENOMEM;
	}
	if (area && !builder->code->position_independent)
		return read_absolute(builder, taken->target, &area->span);
	return 0;
}

/* Read the table at `table`, the entries of which are distances from `base`, up to `end` at most. */
static int read_rebased(struct x86_builder *builder, size_t function, uint64_t table, uint64_t base, uint64_t end)
{
	const struct kymo_span *span = span_at(builder->data, builder->code->n_data, table);
	const struct kymo_extent *extent = &builder->code->functions[function];

	if (!span)
		return 0;
	if (end > span->vaddr + span->size)
		end = span->vaddr + span->size;
	for (uint64_t at = table; at < end && end - at >= 4; at += 4) {
		int32_t entry;

		memcpy(&entry, span->bytes + (at - span->vaddr), sizeof(entry));
		if (base + (uint64_t)entry < extent->start || base + (uint64_t)entry >= extent->end)
			break;
		if (!builder->budget--)
			return -EFBIG;
		x86_mark(builder->map, X86_LIKELY, base + (uint64_t)entry);
	}
	return 0;
}

/* The address taken next after `vaddr`; `taken` is sorted. */
static uint64_t next_taken(const struct x86_builder *builder, uint64_t vaddr)
{
	size_t at = kymo_partition_point(i, builder->taken.n, builder->taken.items[i].target <= vaddr);

	return at < builder->taken.n ? builder->taken.items[at].target : UINT64_MAX;
}

static int find_rebased(struct x86_builder *builder)
{
	struct x86_jumps jumps;
	uint64_t table, base;
	int err = 0;

	x86_jumps_init(builder, &jumps);
	for (size_t i = 0; i < builder->indirect.n && !err; i++) {
		const struct x86_indirect *indirect = &builder->indirect.items[i];

		if (x86_jump_rebased(&jumps, indirect->function, indirect->vaddr, &table, &base))
			err = read_rebased(builder, indirect->function, table, base, next_taken(builder, table));
	}
	return err;
}

static int compare_taken(const void *a, const void *b)
{
	const struct x86_taken *left = a, *right = b;

	if (left->target != right->target)
		return left->target < right->target ? -1 : 1;
	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	return (int)right->by_lea - (int)left->by_lea;
}

int x86_find_tables(struct x86_builder *builder)
{
	const struct x86_taken *taken = builder->taken.items;
	size_t n = builder->taken.n, next = 0;
	int err = find_sure(builder);

	if (err)
		return err;
	if (n)
		qsort(builder->taken.items, n, sizeof(*taken), compare_taken);
	for (size_t i = 0; i < n; i++) {
		if (i && taken[i].target == taken[i - 1].target && taken[i].function == taken[i - 1].function)
			continue;
		while (next < n && (next <= i || taken[next].target == taken[i].target || !taken[next].by_lea))
			next++;
		err = read_jump_tables(builder, &taken[i], next < n ? taken[next].target : UINT64_MAX);
		if (err)
			return err;
	}
	return find_rebased(builder);
}
