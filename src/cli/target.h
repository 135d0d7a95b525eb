/*
 * The files that "FILE|PID" on the command line means: one file, or all that a process has mapped executable.
 */
#ifndef KYMO_CLI_TARGET_H
#define KYMO_CLI_TARGET_H

#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "procfs/maps.h"

struct kymo_module;

struct cli_target {
	pid_t pid;                               /* 0: a file */
	struct kymo_maps maps;                   /* of the process */
	char *file;                              /* path of the one file */
	KYMO_VEC(const struct kymo_map *) files; /* of the process, one map each, by path */
};

/* `text` is a PID when it has digits only. USAGE, NOT_FOUND, GONE, PERMISSION. */
struct kymo_error *cli_target_init(const char *text, struct cli_target *ret);
void cli_target_deinit(struct cli_target *target);

size_t cli_target_count(const struct cli_target *target);

/* Read file `i`. `ret` becomes NULL for what a process has mapped and is not ELF: there is nothing to probe in it. */
struct kymo_error *cli_target_open(const struct cli_target *target, size_t i, struct kymo_module **ret);

/*
 * The function names nearest to `name`, as kymo_module_nearest() gives them, of the first file that has such; "" where
 * none has. `file` is what the user calls the file, or NULL: any.
 */
void cli_target_nearest(const struct cli_target *target, const char *file, const char *name, char *out, size_t size);

#endif
