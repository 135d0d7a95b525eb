/* Pads at the system calls that may take memory away from readers (docs/design/fast-reads.md). Private to the room. */
#ifndef KYMO_PROBE_THREADS_STRIKES_H
#define KYMO_PROBE_THREADS_STRIKES_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_maps;
struct kymo_probes;

/* Add those of all modules as pending sites, where the recording reads by a table. */
struct kymo_error *probes_add_strikes(struct kymo_probes *probes);

/* None of them is in yet: there will be none. */
void probes_drop_strikes(struct kymo_probes *probes);

/* Whether each such call in the code that is mapped has its pad in the text. Else `why_ret` is the rest of a sentence
 * that begins with what can't be; static. */
bool probes_are_struck(struct kymo_probes *probes, const struct kymo_maps *maps, const char **why_ret);

#endif
