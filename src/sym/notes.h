/* Notes of files. */
#ifndef KYMO_SYM_NOTES_H
#define KYMO_SYM_NOTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_module;

/* A note of the file. Pointers belong to the module. */
struct kymo_note {
	const char *owner; /* "" where it does not end in a NUL */
	uint32_t type;
	const uint8_t *desc; /* not aligned */
	size_t size;         /* of the descriptor */
	uint64_t vaddr;      /* of the descriptor; 0 where it is not loaded */
	uint64_t offset;     /* of the note in the file */
};

/*
 * The notes of all note sections, loaded or not, in the order of the file's sections; where there are no section
 * headers those of the note segments. Computed at first use. BAD_DATA for notes that run out of their section.
 */
struct kymo_error *kymo_module_notes(struct kymo_module *module, const struct kymo_note **ret, size_t *n_ret);

#endif
