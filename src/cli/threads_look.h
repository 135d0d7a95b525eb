/* Looks at the threads of a process. */
#ifndef KYMO_CLI_THREADS_LOOK_H
#define KYMO_CLI_THREADS_LOOK_H

#include <sys/types.h>

#include "base/error.h"

struct cli_threads;

/* Look at the process of `pid`, which may be any of its threads. GONE: also where it is another process than the one of
 * the look before. */
struct kymo_error *cli_threads_look(struct cli_threads *view, pid_t pid);

/* No look yet is all zero. */
void cli_threads_deinit(struct cli_threads *view);

#endif
