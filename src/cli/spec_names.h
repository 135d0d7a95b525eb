/* Names of the source in specs. */
#ifndef KYMO_CLI_SPEC_NAMES_H
#define KYMO_CLI_SPEC_NAMES_H

#include "probe/spec.h"

/* Give the spec the parameters of its function, by the debug information of its file. USAGE, NOT_FOUND. */
struct kymo_error *cli_spec_find_names(struct kymo_spec *spec);

#endif
