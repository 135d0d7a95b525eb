/* What a module tells of itself. */
#ifndef KYMO_SYM_MODULE_H
#define KYMO_SYM_MODULE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KYMO_BUILD_ID_MAX 32

struct kymo_module;
struct kymo_section;
struct kymo_segment;
struct sym_lazy;
struct sym_range;

const char *kymo_module_path(const struct kymo_module *module);
bool kymo_module_is_pie(const struct kymo_module *module);             /* ET_DYN */
uint64_t kymo_module_entry(const struct kymo_module *module);          /* e_entry, as linked */
const char *kymo_module_interpreter(const struct kymo_module *module); /* PT_INTERP or NULL */
const char *kymo_module_soname(const struct kymo_module *module);      /* DT_SONAME or NULL */

/* Whether it calls another file's pthread_cancel(). */
bool kymo_module_cancels(const struct kymo_module *module);

/* Whether only root and the user who runs this can have written the file and its separate debug information. */
bool kymo_module_is_protected(const struct kymo_module *module);

/* The GNU build-id; `size` is 0 where there is none. */
const uint8_t *kymo_module_build_id(const struct kymo_module *module, size_t *size_ret);

const struct kymo_segment *kymo_module_segments(const struct kymo_module *module, size_t *n_ret);

/* Where the module's addresses begin in a process that has the file mapped executable at `start`, from `offset` in the
 * file on. -ENOENT where no executable segment begins there. */
int kymo_module_bias(const struct kymo_module *module, uint64_t start, uint64_t offset, uint64_t *ret);

/* File offset to vaddr and back through the loadable segments. -ENOENT outside of what the file holds. */
int kymo_module_offset_to_vaddr(const struct kymo_module *module, uint64_t offset, uint64_t *ret);
int kymo_module_vaddr_to_offset(const struct kymo_module *module, uint64_t vaddr, uint64_t *ret);

/* The segment whose memory `vaddr` lies in, or NULL. */
const struct kymo_segment *kymo_module_segment_at(const struct kymo_module *module, uint64_t vaddr);

/* The file's bytes at [vaddr, vaddr + size), or NULL where they do not all lie in what one segment has in the file. */
const uint8_t *kymo_module_bytes(const struct kymo_module *module, uint64_t vaddr, size_t size);

/* Whether [vaddr, vaddr + size) is code: executable bytes in the file that no section calls something else. */
bool kymo_module_is_code(const struct kymo_module *module, uint64_t vaddr, size_t size);

/* The string at `vaddr`, or NULL where it, with its NUL, does not lie in the file or takes more than `max` bytes. */
const char *kymo_module_string(const struct kymo_module *module, uint64_t vaddr, size_t max);

/* Loaded sections with bytes in the file. A file without section headers gives its segments instead. */
const struct kymo_section *kymo_module_sections(const struct kymo_module *module, size_t *n_ret);

/* ---- private to the room --------------------------------------------------------------------- */

/* The file's bytes at [vaddr, vaddr + size), or NULL where they do not lie in one segment's part of the file. */
const uint8_t *sym_bytes(const struct kymo_module *module, uint64_t vaddr, uint64_t size);

/* The bytes from `vaddr` to the end of its segment's part of the file, or NULL. */
const uint8_t *sym_bytes_from(const struct kymo_module *module, uint64_t vaddr, uint64_t *size_ret);

/* The bytes of a section that is loaded from the file, or NULL where it is not, or where the segments say otherwise. */
const uint8_t *sym_section_bytes(const struct kymo_module *module, const Elf64_Shdr *section);

/* The stretch of code that `vaddr` lies in, or NULL. */
const struct sym_range *sym_code_at(const struct kymo_module *module, uint64_t vaddr);

/* Whether a lazy part has still to be computed; where it has failed before, its error. */
bool sym_lazy_begin(const struct sym_lazy *lazy, struct kymo_error **error_ret);

/* Note how computing went. Takes a copy of `error` for the next time and returns it. */
struct kymo_error *sym_lazy_end(struct sym_lazy *lazy, struct kymo_error *error);

#endif
