/* The work of building an entry map, shared by entries.c, scan.c and tables.c. */
#ifndef KYMO_ARCH_X86_64_ENTRIES_H
#define KYMO_ARCH_X86_64_ENTRIES_H

#include "arch/x86_64/x86.h"
#include "base/vec.h"

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

struct x86_builder {
	const struct kymo_module_code *code;
	struct kymo_entry_map *map;
	ZydisDecoder decoder;
	struct kymo_span *data; /* sorted copy */
	KYMO_VEC(struct x86_taken) taken; /* sorted by target once the sweep is over */
	KYMO_VEC(struct x86_indirect) indirect;
	KYMO_VEC(uint64_t) sure; /* addresses of tables that a jump was seen to use, sorted */
	KYMO_VEC(uint64_t) tables; /* addresses that are taken and at which entries were found, sorted */
	uint64_t budget; /* table entries still to be read before the module is refused */
};

/* scan.c: what can be found without knowing where instructions begin. Cannot fail. */
void x86_scan_text(struct x86_builder *builder); /* rel32 branches and lea, at each byte */
void x86_scan_short(struct x86_builder *builder, uint64_t low, uint64_t high); /* rel8 branches that begin there */
void x86_scan_absolute(struct x86_builder *builder, uint64_t low, uint64_t high); /* addresses as constants */
void x86_scan_data(struct x86_builder *builder); /* addresses in data, for position-dependent modules */

/* tables.c: jump tables at the addresses taken. -ENOMEM, -EFBIG where the module has been made to take for ever. */
int x86_find_tables(struct x86_builder *builder);
void x86_jumps_init(struct x86_builder *builder, struct x86_jumps *ret);
bool x86_has_table(void *builder, uint64_t vaddr);

#endif
