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

/* scan.c: what can be found without knowing where instructions begin. Cannot fail. */
void x86_scan_text(struct x86_builder *builder); /* rel32 branches and lea, at each byte */
void x86_scan_short(struct x86_builder *builder, uint64_t low, uint64_t high);    /* rel8 branches that begin there */
void x86_scan_absolute(struct x86_builder *builder, uint64_t low, uint64_t high); /* addresses as constants */
void x86_scan_data(struct x86_builder *builder); /* addresses in data, for position-dependent modules */

/* firm.c: whether what code says of entries counts. -ENOMEM. */
int x86_note_branch(struct x86_builder *builder, size_t function, uint64_t source, uint64_t target);
int x86_note_address(struct x86_builder *builder, size_t function, uint64_t source, uint64_t target);
void x86_firm_reached(struct x86_builder *builder); /* settle those whose code turned out to be entered */
bool x86_firm_computed(
	struct x86_builder *builder); /* and those in functions with computed jumps: true if there are any */

/* sources.c: who leads into a function. Cannot fail. */
void x86_note_source(struct x86_builder *builder, size_t function, const struct x86_insn *branch);
void x86_note_taken(struct x86_builder *builder, size_t function, uint64_t target);

/* stacks.c: how much is left of small stacks, once functions and sources are known. -ENOMEM, -EINVAL. */
int x86_find_stacks(struct x86_builder *builder);

/* tables.c: jump tables at the addresses taken. -ENOMEM, -EFBIG where the module has been made to take for ever. */
int x86_find_tables(struct x86_builder *builder);
void x86_jumps_init(struct x86_builder *builder, struct x86_jumps *ret);
bool x86_has_table(void *builder, uint64_t vaddr);

#endif
