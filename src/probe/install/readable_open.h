/* When the table of readable memory is open (docs/design/fast-reads.md). */
#ifndef KYMO_PROBE_INSTALL_READABLE_OPEN_H
#define KYMO_PROBE_INSTALL_READABLE_OPEN_H

#include <stdint.h>

struct kymo_probes;

/*
 * Twenty times a second, while the process runs: let pads read memory by plain loads once that is proven to work. For
 * that calls that take memory away get pads of their own, and the process is stopped for a moment. Files are looked
 * into for some 20 ms at a time; one file alone may take 300. Does nothing where the recording reads no memory.
 */
void kymo_probes_open_readable(struct kymo_probes *probes, uint64_t *stopped_ns_ret);

#endif
