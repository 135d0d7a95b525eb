/* Where indirect jumps lead. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_JUMPS_H
#define KYMO_ARCH_X86_64_JUMPS_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_entry_map;
struct kymo_module_code;

/* The search for where indirect jumps lead. `has_table` tells whether a jump table begins at an address. */
struct x86_jumps {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	ZydisDecoder decoder;
	bool (*has_table)(void *closure, uint64_t vaddr);
	void *closure;
	ptrdiff_t summary_of;        /* the function that the two below describe, or -1 */
	uint32_t summary_bad;        /* registers that somewhere get something that was computed */
	uint32_t summary_copies[16]; /* registers that each is somewhere copied from */
};

/* Whether the targets of the indirect jump or call at `vaddr` of function `index` are all in the map, as far as the
 * code shows. */
bool x86_jump_is_understood(struct x86_jumps *jumps, size_t index, uint64_t vaddr);

/* Whether the indirect jump uses a relative table whose address is taken in sight: `ret`. */
bool x86_jump_table(const struct x86_jumps *jumps, size_t index, uint64_t vaddr, uint64_t *ret);

/* Whether it is jmp *T(,%reg,8) in a module that cannot move, which has addresses at T. */
bool x86_jump_absolute(const struct x86_jumps *jumps, uint64_t vaddr, uint64_t *ret);

/* Whether it goes to the sum of an entry of the table at `table_ret` and another address, `base_ret`, both taken in
 * sight. */
bool x86_jump_rebased(const struct x86_jumps *jumps, size_t index, uint64_t vaddr, uint64_t *table_ret,
		      uint64_t *base_ret);

/* Whether it goes to the sum of an address and a 32-bit entry of what lies there, wherever that address comes from: a
 * relative table. */
bool x86_jump_adds(const struct x86_jumps *jumps, size_t index, uint64_t vaddr);

#endif
