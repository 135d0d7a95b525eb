/* Which functions could be cloned for histories of branches, as `kymo explain --branch` shows it. */
#ifndef KYMO_CLI_EXPLAIN_BRANCH_H
#define KYMO_CLI_EXPLAIN_BRANCH_H

#include "base/error.h"

/* Of FILE or PID `where`: the functions that `pattern` matches with what their clones are made of, or, where it is
 * NULL, those that could not be cloned, and why; then totals. NOT_FOUND, UNSAFE where none of those named can be
 * cloned. */
struct kymo_error *cli_explain_branch(const char *where, const char *pattern);

#endif
