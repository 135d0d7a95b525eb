/*
 * Code as a planner sees it, and the beginning of the contract of this room: between the half that knows processes and
 * the half that knows opcodes. Everything in code.h, plan.h, exits.h and fetch.h is a pure function of bytes and
 * addresses: no system calls, no processes, no files.
 *
 * Two kinds of address:
 *   vaddr	as linked, the addresses of the ELF file; planning uses only these
 *   runtime	where something is in the target: vaddr + the module's bias; emitting uses these
 *
 * Functions return 0 or a negative errno unless told otherwise, and allocate only where a name ends in _create.
 * None is signal safe; all are thread safe on different objects.
 */
#ifndef KYMO_ARCH_CODE_H
#define KYMO_ARCH_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A run of bytes of a module and its vaddr. The bytes belong to the caller. */
struct kymo_span {
	uint64_t vaddr;
	const uint8_t *bytes;
	size_t size;
};

/* One function, [start, end) in vaddr. */
struct kymo_extent {
	uint64_t start, end;
};

/*
 * Everything about a module that tells where control can enter other than by falling through from the instruction
 * before. `functions` is sorted by start and does not overlap. All arrays belong to the caller and must outlive the
 * map built from them.
 */
struct kymo_module_code {
	const struct kymo_span *text; /* executable sections */
	size_t n_text;
	/* What is mapped to be executed, and not to be written: sections side by side in one of these stay together.
	 * May be NULL. */
	const struct kymo_extent *fixed;
	size_t n_fixed;
	const struct kymo_span *data; /* initialized sections that are not executable: jump tables, pointers */
	size_t n_data;
	const struct kymo_extent *functions;
	size_t n_functions;
	const uint64_t *entries; /* known ones: symbols, landing pads, relocation addends, the ELF entry; sorted */
	size_t n_entries;
	const struct kymo_extent *rseq; /* restartable sequences of the module itself; nothing is put there */
	size_t n_rseq;
	struct kymo_extent
		small_stacks; /* functions that begin in here run on stacks that they let grow (Go's); empty: none do */
	uint32_t small_stacks_left; /* bytes of such a stack, at most 4096, below the frame of a function that has
				       looked whether it has to grow */
	bool position_independent;  /* false: absolute addresses in data may be code pointers without a relocation */
	bool is_jit; /* a program generates it while it runs: it is not known what enters it and where, and the program
			may change what it usually changes */
};

/*
 * The set of addresses of a module at which control may arrive. It is a superset: each direct branch of each function,
 * each code address taken, each jump-table entry, each entry handed in.
 */
struct kymo_entry_map;

/* Build the map: decodes all of the text once. -ENOMEM; -EINVAL where sections overlap or functions are empty or out of
 * order; -EFBIG for a module made so that its jump tables would take for ever. */
int kymo_entry_map_create(const struct kymo_module_code *code, struct kymo_entry_map **ret);
void kymo_entry_map_destroy(struct kymo_entry_map *map);

/* The map as bytes, a fresh array that the caller frees; -ENOMEM. They are for this very build of kymo. */
int kymo_entry_map_pack(const struct kymo_entry_map *map, void **ret, size_t *size_ret);

/* The map that these bytes were made of, for the same module. It takes `bytes`, which are of kymo_large_alloc(size),
 * but not on failure: -EINVAL for bytes of another module, or damaged ones where that shows; -ENOMEM. The caller
 * vouches for the rest: a map that is wrong makes plans that are wrong. */
int kymo_entry_map_unpack(const struct kymo_module_code *code, void *bytes, size_t size, struct kymo_entry_map **ret);

/* Whether control may arrive at exactly `vaddr`. True for addresses outside of the text. */
bool kymo_entry_map_has(const struct kymo_entry_map *map, uint64_t vaddr);

/* Where a probe on `vaddr` really goes: after an endbr64, which stays, or `vaddr` itself. kymo_plan() does the same.
 */
uint64_t kymo_site_of(const struct kymo_entry_map *map, uint64_t vaddr);

/* The start of every instruction in [low, high) of one function, as the sweep from its start sees them; a fresh array.
 * -EPERM where the function does not decode. */
int kymo_instructions_create(const struct kymo_entry_map *map, uint64_t low, uint64_t high, uint64_t **ret,
			     size_t *n_ret);

/* Whether something is known to lead to the instruction at `vaddr`, one of those; else it may be data. */
bool kymo_is_reached(const struct kymo_entry_map *map, uint64_t vaddr);

/* Whether an instruction is known to read some of the `size` bytes at `vaddr`, all in text. */
bool kymo_is_read(const struct kymo_entry_map *map, uint64_t vaddr, size_t size);

/* One line of text for the instruction at `bytes` (Intel syntax), for `kymo explain`. Returns its length in bytes,
 * or -EINVAL when it does not decode; `text` is "(bad)" then. */
int kymo_disassemble(const uint8_t *bytes, size_t size, uint64_t address, char *text, size_t text_size);

#endif
