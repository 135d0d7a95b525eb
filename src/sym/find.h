/* Symbols by names. */
#ifndef KYMO_SYM_FIND_H
#define KYMO_SYM_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct kymo_module;
struct kymo_symbol;

/*
 * Symbols whose name in the file matches `pattern` (kymo_is_glob(), or exact). If there are none, or `pattern` has a
 * "::", whose name in C++ or Rust matches it: with parameters one function, without these each overload, without
 * template arguments each that is made of the template. Into a fresh array that the caller frees (the pointers belong
 * to the module). One entry per vaddr: of aliases that match the exported one, without leading underscores, the
 * shortest, the first by name. "name@VERSION" selects a version; a plain name with several versions takes the default.
 * 0 matches is success with n = 0.
 */
struct kymo_error *kymo_module_find(struct kymo_module *module, const char *pattern, const struct kymo_symbol ***ret,
				    size_t *n_ret);

/* The up to three function names nearest to `name` (edit distance, at most half of the length; a name that only goes on
 * counts as two; ties by name), joined ", " into `out`; "" where nothing is near. Mangled names are compared, and
 * given, without parameters; with these where nothing else is wrong. */
void kymo_module_nearest(struct kymo_module *module, const char *name, char *out, size_t size);

/* ---- private to the room --------------------------------------------------------------------- */

/* Make `by_name`. False when memory is out. */
bool sym_index(struct kymo_module *module);

/* How near `other` is to what a user has typed: an edit distance, or `limit` + 1 for all that is more. Both have at
 * most 256 letters. */
unsigned int sym_nearness(const char *name, size_t length, const char *other, size_t other_length, unsigned int limit);

#endif
