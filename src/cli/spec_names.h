/* Names of the source in specs. */
#ifndef KYMO_CLI_SPEC_NAMES_H
#define KYMO_CLI_SPEC_NAMES_H

#include "probe/spec/spec.h"

/* Give the spec the meaning of its names, by the debug information of its file. USAGE, NOT_FOUND. Where it only wants
 * them, what is not there is no error. */
struct kymo_error *cli_spec_find_names(struct kymo_spec *spec);

#endif
