/* Relocations, and words that nothing but these writes to. */
#ifndef KYMO_SYM_RELOCS_H
#define KYMO_SYM_RELOCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_module;

/* The word at `vaddr`, in read-only data or a global offset table, as it is when the module is loaded at 0: nothing but
 * relocation writes to it. -ENOENT for other places, and where it is what a resolver returns. */
int kymo_module_constant(struct kymo_module *module, uint64_t vaddr, uint64_t *ret);

/* Where the module keeps what the IFUNC resolver at `resolver` has returned: the vaddr of word number `i` (0 …), which
 * is not bound yet where linking is lazy. -ENOENT: there are no more. */
int kymo_module_bound_word(struct kymo_module *module, uint64_t resolver, size_t i, uint64_t *ret);

/* ---- private to the room --------------------------------------------------------------------- */

/* Fill in `relocs`. Words of DT_RELR are left out: they stand in the file as they are. */
struct kymo_error *sym_relocs_read(struct kymo_module *module);

/* Call `see` for the address of each word that DT_RELR relocates. */
struct kymo_error *sym_relr_walk(struct kymo_module *module, void (*see)(void *data, uint64_t where), void *data);

/* The word at `vaddr` as it is when the module is loaded at 0. False where the file does not hold it. */
bool sym_word(struct kymo_module *module, uint64_t vaddr, uint64_t *ret);

#endif
