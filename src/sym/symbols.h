/* Symbols, and data objects. */
#ifndef KYMO_SYM_SYMBOLS_H
#define KYMO_SYM_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_module;
struct kymo_symbol;
struct sym_image;
struct sym_table;

/* Symbols of functions that have code (defined FUNC and IFUNC; not PLT stubs, not undefined ones), from .symtab,
 * .dynsym and separate debug information. If these have none, the symbols of Go's runtime table; sorted by vaddr then
 * name, duplicates (same name, vaddr) once. */
const struct kymo_symbol *kymo_module_symbols(const struct kymo_module *module, size_t *n_ret);

/* A data object's vaddr and size by name, from .dynsym or .symtab (such as "__rseq_offset", "_thread_db_pthread_tid").
 * -ENOENT. */
int kymo_module_find_object(struct kymo_module *module, const char *name, uint64_t *vaddr_ret, uint64_t *size_ret);

/* The vaddr of the one data object of that name, such as a static variable. -ENOENT; -ENOTUNIQ where several are called
 * so. */
int kymo_module_only_object(struct kymo_module *module, const char *name, uint64_t *ret);

/* ---- private to the room --------------------------------------------------------------------- */

/* Fill in `symbols`, `objects` and `marks` from all tables, and names of Go's functions that these lack.
 * `sym_section_table` finds an image's .symtab. */
struct kymo_error *sym_symbols_read(struct kymo_module *module);
struct kymo_error *sym_section_table(const struct sym_image *image, struct sym_table *ret);

#endif
