/*
 * A loaded module's own notes: what `.note.kymo` says, in memory. Private to the library.
 */
#ifndef KYMO_LIB_NOTES_H
#define KYMO_LIB_NOTES_H

#include "markers.h"

/* A module as dl_iterate_phdr() tells of it; can't be unmapped meanwhile. */
struct lib_found {
	ElfW(Addr) base;
	const ElfW(Phdr) * phdrs;
	size_t n_phdrs;
};

/* Whether there is a note of kymo's. Allocates nothing. */
bool kymo_lib_has_notes(const struct lib_found *found);

/* Whether `address` is in what the module takes. */
bool kymo_lib_is_inside(const struct lib_found *found, uintptr_t address);

/*
 * Read all notes. A section may be damaged: each address must lie in a suitable segment of the module, no two sites,
 * gates or slots overlap, and strings end. Text is executable; gates and slots are writable, and not made read-only
 * after relocation. Where one note breaks that the whole module is refused, and nothing of it was touched. `path` of
 * the result is NULL.
 *
 *	-ENOENT	no notes
 *	-EBADMSG	a damaged one
 *	-ENOMEM
 */
int kymo_lib_read_module(const struct lib_found *found, struct lib_module **ret);

/* NULL is allowed. Nothing that readers may still use: see kymo_lib_retire(). */
void kymo_lib_destroy_module(struct lib_module *module);

#endif
