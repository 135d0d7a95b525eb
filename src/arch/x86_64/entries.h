/* The work of building an entry map, shared by entries.c, scan.c and tables.c. */
#ifndef KYMO_ARCH_X86_64_ENTRIES_H
#define KYMO_ARCH_X86_64_ENTRIES_H

#include <Zydis/Zydis.h>

#include "arch/x86_64/map.h"
#include "base/vec.h"

struct kymo_entry_map;
struct kymo_module_code;

#define X86_NO_FUNCTION SIZE_MAX

/* An address that code of `function` takes: by lea, or (position-dependent modules) as a constant. */
struct x86_taken {
	uint64_t target;
	size_t function; /* index, or X86_NO_FUNCTION */
	bool by_lea;
};

/* An indirect jump or call of a function. */
struct x86_indirect {
	uint64_t vaddr;
	size_t function;
};

/* A branch of `function` at `source`, where nothing is known to lead to `source`; or an address that is taken there. */
struct x86_doubted {
	uint64_t source, target;
	size_t function;
	bool is_taken;
};

struct x86_builder {
	const struct kymo_module_code *code;
	struct kymo_entry_map *map;
	ZydisDecoder decoder;
	struct kymo_span *data;           /* sorted copy */
	KYMO_VEC(struct x86_taken) taken; /* sorted by target once the sweep is over */
	KYMO_VEC(struct x86_indirect) indirect;
	KYMO_VEC(uint64_t) sure;   /* addresses of tables that a jump was seen to use, sorted */
	KYMO_VEC(uint64_t) tables; /* addresses that are taken and at which entries were found, sorted */
	KYMO_VEC(struct x86_doubted) doubted;
	bool is_firm;    /* the sweep stands in code that is known to be entered */
	uint64_t budget; /* table entries still to be read before the module is refused */
};

/* A map of the module that has areas, and none of the other arrays yet. -ENOMEM; -EINVAL as kymo_entry_map_create() has
 * it. */
int x86_entry_map_begin(const struct kymo_module_code *code, struct kymo_entry_map **ret);

/* Free it, but for the other arrays. */
void x86_entry_map_forget(struct kymo_entry_map *map);

#endif
