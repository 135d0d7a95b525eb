/* Addresses to bits and back. */
#include "arch/x86_64/marks.h"

#include "arch/x86_64/map.h"
#include "base/search.h"

const struct x86_area *x86_find_area(const struct kymo_entry_map *map, uint64_t vaddr)
{
	if (vaddr < map->low || vaddr >= map->high)
		return NULL;
	size_t behind = kymo_partition_point(i, map->n_areas, map->areas[i].span.vaddr <= vaddr);
	const struct x86_area *area = behind ? &map->areas[behind - 1] : NULL;
	return area && vaddr - area->span.vaddr < area->span.size ? area : NULL;
}

const uint8_t *x86_text_at(const struct kymo_entry_map *map, uint64_t vaddr, size_t *size_ret)
{
	const struct x86_area *area = x86_area_at(map, vaddr);

	if (!area)
		return NULL;
	*size_ret = area->span.size - (size_t)(vaddr - area->span.vaddr);
	return area->span.bytes + (vaddr - area->span.vaddr);
}

void x86_mark_entered(struct kymo_entry_map *map, uint64_t vaddr)
{
	x86_mark(map, X86_KNOWN, vaddr);
	x86_mark(map, X86_FIRM, vaddr);
}

uint64_t x86_last(const struct kymo_entry_map *map, unsigned int mask, uint64_t low, uint64_t high)
{
	const struct x86_area *area = x86_area_at(map, high);
	uint64_t first, bit;

	if (!area || low > high || low < area->span.vaddr)
		return UINT64_MAX;
	first = area->base + (low - area->span.vaddr);
	bit = area->base + (high - area->span.vaddr);
	for (;;) {
		uint64_t word = 0, found;

		for (int i = 0; i < X86_N_BITMAPS; i++) {
			if (mask >> i & 1)
				word |= map->bits[i][bit / 64];
		}
		word &= UINT64_MAX >> (63 - bit % 64);
		if (word) {
			found = bit / 64 * 64 + 63 - (uint64_t)__builtin_clzll(word);
			return found >= first ? area->span.vaddr + (found - area->base) : UINT64_MAX;
		}
		if (bit / 64 * 64 <= first)
			return UINT64_MAX;
		bit = bit / 64 * 64 - 1;
	}
}

size_t x86_entries_in(const struct kymo_module_code *code, uint64_t low, uint64_t high, const uint64_t **ret)
{
	const size_t first = kymo_partition_point(i, code->n_entries, code->entries[i] < low);

	*ret = code->entries + first;
	return kymo_partition_point(i, code->n_entries - first, (*ret)[i] < high);
}

ptrdiff_t x86_function_at(const struct kymo_module_code *code, uint64_t vaddr)
{
	size_t behind = kymo_partition_point(i, code->n_functions, code->functions[i].start <= vaddr);

	return behind && vaddr < code->functions[behind - 1].end ? (ptrdiff_t)behind - 1 : -1;
}
