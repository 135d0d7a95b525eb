/* Names of markers' events. Pure, and without anything of a module. */
#ifndef KYMO_MARKER_NAME_H
#define KYMO_MARKER_NAME_H

#include <stdbool.h>

/* "postgresql:query__start"; what the author of a marker of kymo's has given no provider of its own is told by its
 * file, "server:request". To be freed; NULL when memory is out. */
char *kymo_marker_event_name(const char *module_path, bool is_sdt, const char *provider, const char *name);

#endif
