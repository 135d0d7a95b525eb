/* Which pages the table of readable memory has (docs/design/fast-reads.md). Private to the room. */
#ifndef KYMO_PROBE_INSTALL_READABLE_PAGES_H
#define KYMO_PROBE_INSTALL_READABLE_PAGES_H

struct kymo_probes;

/* Whether it reads by a table, and from when on, by what the user wants; before the process has its memory. */
void probes_choose_fast_reads(struct kymo_probes *probes);

/* Now and then: add what pads have asked for, or see that the table is not to be used. */
void probes_look_at_readable(struct kymo_probes *probes);

#endif
