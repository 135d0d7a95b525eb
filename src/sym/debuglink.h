/* Separate debug information. */
#ifndef KYMO_SYM_DEBUGLINK_H
#define KYMO_SYM_DEBUGLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sym/module.h"

struct kymo_module;
struct sym_image;

/* Whether the file, or separate debug information that was read with it, tells lines of source (.debug_line). */
bool kymo_module_has_lines(const struct kymo_module *module);

/* ---- private to the room --------------------------------------------------------------------- */

/*
 * Find separate debug information and open it as `debug`. What is not found or does not fit is no error.
 */
struct kymo_error *sym_debug_attach(struct kymo_module *module);

/* The path of separate debug information, even where the file has all symbols; a fresh string, or NULL. `misfit_ret`:
 * that of a file in its place that is of another build; likewise. */
struct kymo_error *sym_debug_find(const struct kymo_module *module, char **ret, char **misfit_ret);

/* The build-id in the note sections of an image of debug information; 0: it has none. */
size_t sym_debug_build_id(const struct sym_image *image, uint8_t id[KYMO_BUILD_ID_MAX]);

#endif
