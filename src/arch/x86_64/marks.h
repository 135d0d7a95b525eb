/* Bits and functions of an entry map. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_MARKS_H
#define KYMO_ARCH_X86_64_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/x86_64/map.h"

struct kymo_module_code;

/* x86_area_at() for any area. */
const struct x86_area *x86_find_area(const struct kymo_entry_map *map, uint64_t vaddr);

/* The area that holds `vaddr`, or NULL. Nearly always it is the largest. */
static inline const struct x86_area *x86_area_at(const struct kymo_entry_map *map, uint64_t vaddr)
{
	const struct x86_area *largest = &map->areas[map->largest];

	return vaddr - largest->span.vaddr < largest->span.size ? largest : x86_find_area(map, vaddr);
}

/* Bytes of text at `vaddr`, and in `size_ret` how many there are; NULL outside of the text. */
const uint8_t *x86_text_at(const struct kymo_entry_map *map, uint64_t vaddr, size_t *size_ret);

static inline bool x86_test(const struct kymo_entry_map *map, enum x86_bitmap which, uint64_t vaddr)
{
	const struct x86_area *area = x86_area_at(map, vaddr);
	uint64_t bit;

	if (!area)
		return false;
	bit = area->base + (vaddr - area->span.vaddr);
	return map->bits[which][bit / 64] >> (bit % 64) & 1;
}

/* Outside of the text: nothing. */
static inline void x86_mark(struct kymo_entry_map *map, enum x86_bitmap which, uint64_t vaddr)
{
	const struct x86_area *area = x86_area_at(map, vaddr);
	uint64_t bit;

	if (!area)
		return;
	bit = area->base + (vaddr - area->span.vaddr);
	map->bits[which][bit / 64] |= UINT64_C(1) << (bit % 64);
}

void x86_mark_entered(struct kymo_entry_map *map, uint64_t vaddr); /* known, and firmly */

/* The last address in [low, high] (of one area) with a bit in any of the bitmaps of `mask`, or UINT64_MAX. */
uint64_t x86_last(const struct kymo_entry_map *map, unsigned int mask, uint64_t low, uint64_t high);

/* How many of the module's known entries are in [low, high), and the first of them. */
size_t x86_entries_in(const struct kymo_module_code *code, uint64_t low, uint64_t high, const uint64_t **ret);

/* Index of the function that contains `vaddr`, or -1. */
ptrdiff_t x86_function_at(const struct kymo_module_code *code, uint64_t vaddr);

#endif
