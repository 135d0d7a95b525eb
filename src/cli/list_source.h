/* What debug information tells of a location: `kymo list --vars` and `--lines`. */
#ifndef KYMO_CLI_LIST_SOURCE_H
#define KYMO_CLI_LIST_SOURCE_H

#include "base/error.h"

#include <stdbool.h>

/* The variables that are visible at the location, their types, and where they are. */
struct kymo_error *cli_list_vars(const char *location, bool json);

/* The lines of the function at the location, with those that can be probed. */
struct kymo_error *cli_list_lines(const char *location, bool json);

#endif
