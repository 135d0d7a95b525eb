/* Mapping trampolines. Private to the room. */
#ifndef KYMO_PROBE_MEMORY_TRAMPOLINES_H
#define KYMO_PROBE_MEMORY_TRAMPOLINES_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_process;
struct kymo_shared;
struct probe_layout;

/*
 * Map room for trampolines, in the stopped process, within a remote call: its other threads may run. `taken_ret`:
 * something has been mapped there meanwhile; what was mapped here before stays until the recording is taken out.
 * `fd_ret`, the caller's, is of the file that is mapped; untouched where nothing new was.
 */
struct kymo_error *kymo_shared_map_trampolines(struct kymo_shared *shared, struct kymo_process *process,
					       const struct probe_layout *layout, int *fd_ret, bool *taken_ret);

/* Write the trampolines into what kymo_shared_map_trampolines() has mapped, permanently; the process may run. To be
 * done before anything leads there. */
struct kymo_error *kymo_shared_fill_trampolines(int fd, const struct probe_layout *layout);

#endif
