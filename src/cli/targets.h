/*
 * The processes that a command line names: `--pid 1,2`, `--pid` again, `--name nginx`.
 */
#ifndef KYMO_CLI_TARGETS_H
#define KYMO_CLI_TARGETS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct cli_targets {
	KYMO_VEC(pid_t) pids;         /* the processes, each once; the named ones after cli_targets_find() */
	KYMO_VEC(const char *) names; /* as given; strings are the caller's */
};

/* Add `text`, one process id or several with commas between them. USAGE; nothing is added then. */
struct kymo_error *cli_targets_add_pids(struct cli_targets *targets, const char *text);

/* Add a name, which may be a pattern as in a shell. USAGE: it is empty. */
struct kymo_error *cli_targets_add_name(struct cli_targets *targets, const char *name);

/* Whether no process was asked for. */
bool cli_targets_is_empty(const struct cli_targets *targets);

/*
 * Find the processes: the id of a thread becomes its process, each id must be that of a living process, and each name
 * must match one. A name matches what /proc/PID/comm says, or the last part of the program's path or of its argv[0].
 * Processes of kymo match no name. Each process is there once afterwards, ids first. For each name a line on `told`
 * says which processes it means; NULL: none does. NOT_FOUND, with the nearest names.
 */
struct kymo_error *cli_targets_find(struct cli_targets *targets, FILE *told);

void cli_targets_deinit(struct cli_targets *targets);

#endif
