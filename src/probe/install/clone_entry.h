/* Threads of a running process into which function clones are put (docs/design/running-clones.md). Private to the room.
 * All is for a stopped process. */
#ifndef KYMO_PROBE_INSTALL_CLONE_ENTRY_H
#define KYMO_PROBE_INSTALL_CLONE_ENTRY_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_maps;
struct kymo_probes;

/* Whether these are clones for a process that runs. */
bool probes_clones_enter(const struct kymo_probes *probes);

/* Each thread has a control block of glibc's, and its word is free. UNSAFE. */
struct kymo_error *probes_clones_check_threads(struct kymo_probes *probes);

/*
 * Choose the functions that stay as they are, anew: sites of others are written. `occupied_ret`: a handler of signals
 * has interrupted one that should not, and may be done in a moment. UNSAFE, as above; or memory that may have frames of
 * signals is too large, or can't be read.
 */
struct kymo_error *probes_clones_look(struct kymo_probes *probes, const struct kymo_maps *maps, bool *occupied_ret);

/* Right before the text is written: give threads their rings and words, then move those that stand in functions of
 * which the text changes. On an error some may have been moved, which is harmless. */
struct kymo_error *probes_clones_move(struct kymo_probes *probes);

#endif
