/*
 * IFUNCs: names that stand for several functions, one of which a resolver chooses when the program is linked. What it
 * chooses from is read out of its code (kymo_resolver_create()).
 */
#ifndef KYMO_PROBE_CODE_INDIRECT_H
#define KYMO_PROBE_CODE_INDIRECT_H

#include "probe/code/code.h"

/* All addresses as linked. */
struct kymo_indirect {
	const char *
		name; /* by which it is exported, without leading underscores where there is such a one; the module's */
	uint64_t resolver;
	uint64_t *functions; /* that it may choose; sorted */
	size_t n;            /* 0: that can't be told */
	char reason[160];    /* why not: the rest of a sentence about the resolver */
};

/* The IFUNCs of the module that `code` was made of, by resolver; found at the first call. They belong to `code`.
 * BAD_DATA where there are more than any file has. */
struct kymo_error *kymo_indirects(struct kymo_code *code, struct kymo_module *module, const struct kymo_indirect **ret,
				  size_t *n_ret);

/* The one whose resolver is at `vaddr`, or NULL. */
const struct kymo_indirect *kymo_indirect_at(const struct kymo_indirect *items, size_t n, uint64_t vaddr);

/* Whether both may choose the same function. */
bool kymo_indirects_share(const struct kymo_indirect *a, const struct kymo_indirect *b);

/* How the function at `vaddr` is called in a SPEC: "__memmove_avx_unaligned_erms", "memcpy@GLIBC_2.2.5", or "0x15b4c0",
 * its offset in the file. */
void kymo_indirect_describe(const struct kymo_module *module, uint64_t vaddr, char *out, size_t size);

#endif
