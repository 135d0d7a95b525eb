/* How an expression is compiled, for `kymo explain -e`. */
#ifndef KYMO_CLI_EXPLAIN_VALUE_H
#define KYMO_CLI_EXPLAIN_VALUE_H

#include "probe/spec/spec.h"

/*
 * Print the types of the expression `text` and the operations that it is made into, on stdout. `spec` is for the
 * location in `path` whose names it has; or both are NULL, and it has none. USAGE.
 */
struct kymo_error *cli_explain_value(const char *text, const struct kymo_spec *spec, const char *path);

#endif
