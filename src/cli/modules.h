/* Files that a command looks into before it begins, each opened once: probes of one program name it again and again. */
#ifndef KYMO_CLI_MODULES_H
#define KYMO_CLI_MODULES_H

#include "base/error.h"

struct kymo_module;

/* The file at `path`, which stays open until all are closed. Errors as kymo_module_open() has them. Not for several
 * threads. */
struct kymo_error *cli_module(const char *path, struct kymo_module **ret);

/* Close them: nothing that cli_module() gave is in use any more. Later calls open files anew. */
void cli_modules_close(void);

#endif
