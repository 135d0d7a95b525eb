/*
 * A module for the planner out of an ELF file, read with libelf alone, so that planning is tested without src/sym.
 * Enough for what the tests assemble and for system libraries; it trusts the file.
 */
#ifndef KYMO_TESTS_ARCH_LOAD_H
#define KYMO_TESTS_ARCH_LOAD_H

#include "arch/code.h"

struct loaded_symbol {
	char *name;
	uint64_t vaddr, size;
	bool is_function, is_global;
};

struct loaded {
	struct kymo_module_code code;
	struct loaded_symbol *symbols;
	size_t n_symbols;
	void *elf;
	int fd;
};

/* True, or false where the file cannot be read. Functions are symbols with a size, and what .eh_frame adds to them;
 * symbols `rseq_start` and `rseq_end` bound a restartable sequence. */
bool load(const char *path, struct loaded *ret);
void unload(struct loaded *loaded);

/* The symbol called by the `length` bytes at `name`, or NULL. */
const struct loaded_symbol *loaded_symbol(const struct loaded *loaded, const char *name, size_t length);

#endif
