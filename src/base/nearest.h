/* Names that a user may have meant. */
#ifndef KYMO_BASE_NEAREST_H
#define KYMO_BASE_NEAREST_H

#include <stddef.h>

#define KYMO_EDITED_MAX 64   /* bytes of a word, for a distance */
#define KYMO_NEAREST_MAX 240 /* bytes of a list */

/* How many bytes are to be put in, taken out or changed to make one word of the other (Levenshtein's distance). Both
 * have KYMO_EDITED_MAX bytes at most. */
unsigned int kymo_edit_distance(const char *a, size_t n, const char *b, size_t m);

/*
 * "count, name, port" of the `n` names (NULLs are left out): those first that are nearest to the `size` bytes at
 * `name`, by edit distance, then as they are given; with ", …" where there are more than the list has room for. Empty
 * where there are none. Returns `out`.
 */
const char *kymo_nearest_list(const char *name, size_t size, const char *const *names, size_t n,
			      char out[KYMO_NEAREST_MAX]);

#endif
