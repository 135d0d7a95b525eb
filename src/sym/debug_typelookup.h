/* Types by their names. */
#ifndef KYMO_SYM_DEBUG_TYPELOOKUP_H
#define KYMO_SYM_DEBUG_TYPELOOKUP_H

#include <stddef.h>

#include "base/error.h"

struct kymo_ctype;
struct kymo_debug;

/* The type that `text` names ("struct conn", "conn_t", "unsigned long *"), or NULL. */
struct kymo_error *kymo_debug_type(struct kymo_debug *debug, const char *text, size_t length,
				   const struct kymo_ctype **ret);

/* The type that is most like the name in `text`, of which two bytes, or a third, may differ; "struct" and the like are
 * not in what is returned, and it belongs to `debug`. NULL: there is none. */
const char *kymo_debug_near_type(struct kymo_debug *debug, const char *text, size_t length);

#endif
