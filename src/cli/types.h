/* Files whose types are known to all probes: --types. */
#ifndef KYMO_CLI_TYPES_H
#define KYMO_CLI_TYPES_H

#include <stddef.h>

#include "base/error.h"

struct kymo_debug;

/* The user names one; a second time is the same. `path` stays for as long as kymo runs. NO_MEMORY. */
struct kymo_error *cli_types_add(const char *path);

/* The debug information of all of them, in their order; it is open until cli_types_deinit(). USAGE: a file cannot be
 * read, or has none. */
struct kymo_error *cli_types_open(struct kymo_debug *const **ret, size_t *n_ret);

void cli_types_deinit(void);

#endif
