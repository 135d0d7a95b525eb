/* Which program a process runs. */
#ifndef KYMO_PROBE_MEMORY_PROGRAM_H
#define KYMO_PROBE_MEMORY_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a process runs a kymo, by its program: the file of this process, or a name that begins with "kymo". `err_ret`
 * (may be NULL): why that is not known, as -errno; else 0. */
bool kymo_is_kymo(pid_t pid, int *err_ret);

#endif
