/* Files of debug information that the user names: --debug-file. */
#ifndef KYMO_CLI_DEBUG_FILES_H
#define KYMO_CLI_DEBUG_FILES_H

#include "base/error.h"

struct kymo_debug;
struct kymo_module;

/* The user names one; a second time is the same. `path` stays for as long as kymo runs. NO_MEMORY. */
struct kymo_error *cli_debug_files_add(const char *path);

/*
 * The debug information of the module: of the first file named that is of its build, or its own. USAGE: a named file
 * cannot be read, or is of another build and the module has none of its own; else as kymo_debug_open().
 */
struct kymo_error *cli_debug_open(const struct kymo_module *module, struct kymo_debug **ret);

/* Refuse, after all are open, a named file that is of the build of none, with both build-ids, or that nothing needs:
 * USAGE. */
struct kymo_error *cli_debug_files_check(void);

void cli_debug_files_deinit(void);

#endif
