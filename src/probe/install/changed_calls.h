/* Text that the process has changed since it was loaded. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_CHANGED_CALLS_H
#define KYMO_PROBE_INSTALL_CHANGED_CALLS_H

#include <stdbool.h>

struct kymo_maps;
struct kymo_probes;

/* Whether text of a module has an instruction that calls the kernel where its file has none, beside what recordings
 * have written. Looks at the pages alone that are the process's own. True, too, where that can't be told. */
bool probes_has_changed_calls(const struct kymo_probes *probes, const struct kymo_maps *maps);

#endif
