/*
 * What a module's file says of its locations. Private to the library; x86-64 only.
 */
#ifndef KYMO_LIB_RECORD_IMAGE_H
#define KYMO_LIB_RECORD_IMAGE_H

#include "markers.h"

/* What the file of a module says. */
struct record_image {
	const struct lib_module *module; /* NULL: of none */
	char *path;                      /* as the process has it mapped */
	uint64_t start, offset;          /* a mapping of it: where it is in memory, and in the file */
	char build_id[65];
	char *bytes;                   /* of the tables below */
	struct record_symbol *symbols; /* all, by address */
	size_t n_symbols;
	struct record_symbol *functions; /* those with an extent, which do not overlap */
	size_t n_functions;
};

/* `inside` is an address in the module's text. What the file does not tell is left out. -ENOMEM. */
int kymo_record_image_create(const struct lib_module *module, uintptr_t inside, struct record_image *ret);
void kymo_record_image_deinit(struct record_image *image);

/* "function+0x12", as kymo_module_describe() has it (sym/sym.h). */
void kymo_record_image_describe(const struct record_image *image, uintptr_t address, char *out, size_t size);

#endif
