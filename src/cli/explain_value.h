/* What becomes of an expression, for `kymo explain -e`. */
#ifndef KYMO_CLI_EXPLAIN_VALUE_H
#define KYMO_CLI_EXPLAIN_VALUE_H

#include "base/error.h"

/* Print the types of the expression `text` and the operations that it is made into, on stdout. USAGE. */
struct kymo_error *cli_explain_value(const char *text);

#endif
