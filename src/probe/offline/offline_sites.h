/* What specs mean in one file, without a process. */
#ifndef KYMO_PROBE_OFFLINE_OFFLINE_SITES_H
#define KYMO_PROBE_OFFLINE_OFFLINE_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct kymo_offline;

/* Whether the program reads bytes of any of the sites, which breakpoints would change. The files are decoded for this.
 */
struct kymo_error *kymo_offline_are_read(struct kymo_offline *offline, bool *ret);

/* Add the sites that a spec means in a file, once. */
struct kymo_error *offline_resolve(struct kymo_offline *offline, size_t spec, size_t file);

#endif
