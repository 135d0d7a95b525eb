/* Constants that enumerations name. */
#ifndef KYMO_SYM_DEBUG_ENUMERATORS_H
#define KYMO_SYM_DEBUG_ENUMERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_ctype;
struct kymo_ctype_enumerator;
struct kymo_debug;

/* All of an ENUM. */
struct kymo_error *kymo_debug_enumerators(struct kymo_debug *debug, const struct kymo_ctype *type,
					  const struct kymo_ctype_enumerator **ret, size_t *n_ret);

/*
 * The one that `text` names, and its type; NULL in `type_ret`: there is none. Namespaces and the enumeration may stand
 * before the name, or some of them, as in "Kind::Large". One of the unit that holds `vaddr` comes before those of
 * other units. `is_one_ret`: there is no other one, as near, with another value.
 */
struct kymo_error *kymo_debug_enumerator(struct kymo_debug *debug, uint64_t vaddr, const char *text, size_t length,
					 const struct kymo_ctype **type_ret, struct kymo_ctype_enumerator *ret,
					 bool *is_one_ret);

#endif
