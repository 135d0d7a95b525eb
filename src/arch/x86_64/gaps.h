/* Text that is in no function. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_GAPS_H
#define KYMO_ARCH_X86_64_GAPS_H

#include <stdint.h>

struct kymo_entry_map;
struct kymo_module_code;
struct kymo_span;

/* Text that is in no function. */
struct x86_gap {
	uint64_t low, high;
	uint8_t *is_code; /* for each address from `low` on: an instruction that control may arrive at; to be freed */
};

/* The gap that `vaddr`, which is in `span` and in no function, is in. -ENOMEM. */
int x86_gap_at(const struct kymo_module_code *code, const struct kymo_entry_map *map, const struct kymo_span *span,
	       uint64_t vaddr, struct x86_gap *ret);

#endif
