/* Opening and closing modules. */
#ifndef KYMO_SYM_OPEN_H
#define KYMO_SYM_OPEN_H

#include "base/error.h"

struct kymo_module;

/*
 * Read the ELF file open at `fd` (not consumed). `path` is used in messages and for kymo_module_path(). Separate debug
 * information is looked for under /usr/lib/debug/.build-id and by .gnu_debuglink beside the file; it adds symbols.
 * Errors: BAD_DATA for what is not ELF, truncated, or damaged ("PATH: section header table lies beyond the end of the
 * file (offset 0x…, size 0x…)"); BAD_DATA for another architecture ("PATH is a 32-bit program; kymo traces x86-64
 * programs only"); NO_MEMORY.
 */
struct kymo_error *kymo_module_open_fd(int fd, const char *path, struct kymo_module **ret);

/* The same by path. NOT_FOUND, PERMISSION. */
struct kymo_error *kymo_module_open(const char *path, struct kymo_module **ret);
void kymo_module_close(struct kymo_module *module);

#endif
