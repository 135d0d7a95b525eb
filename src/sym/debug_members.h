/* What types are made of. */
#ifndef KYMO_SYM_DEBUG_MEMBERS_H
#define KYMO_SYM_DEBUG_MEMBERS_H

#include <stddef.h>

#include "base/error.h"

struct kymo_ctype;
struct kymo_ctype_member;
struct kymo_debug;

/* The members of a STRUCT or UNION; a declaration without members is looked up by its name in other units. */
struct kymo_error *kymo_debug_members(struct kymo_debug *debug, const struct kymo_ctype *type,
				      const struct kymo_ctype_member **ret, size_t *n_ret);

/* The same, but members of structures without names and of base classes are not listed: these are members themselves,
 * without a name. */
struct kymo_error *kymo_debug_parts(struct kymo_debug *debug, const struct kymo_ctype *type,
				    const struct kymo_ctype_member **ret, size_t *n_ret);

#endif
