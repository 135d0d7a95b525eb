/* When the table of readable memory is open, and which pages are in it (docs/design/fast-reads.md). Private to the
 * room.
 */
#ifndef KYMO_PROBE_INSTALL_READABLE_PAGES_H
#define KYMO_PROBE_INSTALL_READABLE_PAGES_H

struct kymo_probes;

/* Now and then: open the table, and add what pads have asked for. */
void probes_look_at_readable(struct kymo_probes *probes);

#endif
