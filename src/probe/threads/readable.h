/* The table of memory that pads read by plain loads (docs/design/fast-reads.md). Private to the room. */
#ifndef KYMO_PROBE_THREADS_READABLE_H
#define KYMO_PROBE_THREADS_READABLE_H

#include <stdint.h>

struct kymo_probes;

/* Whether this recording uses one; to be called before the process has its memory. */
void probes_choose_readable(struct kymo_probes *probes);

/* Nor does this process, if it is known that its threads have no sequences. */
void probes_forgo_readable(struct kymo_probes *probes);

/* The memory is there: its first pages are allocated. Where that fails no table is used. */
void probes_prepare_readable(struct kymo_probes *probes);

/* KYMO_PAD_LIVE_READABLE of the process with these probes. */
uint64_t probes_readable_address(const struct kymo_probes *probes);

/* The process is stopped: the kernel may fence its sequences from now on. */
void probes_register_readable(struct kymo_probes *probes);

/* Now and then: open the table, and add what pads have asked for. */
void probes_look_at_readable(struct kymo_probes *probes);

/* For good, and tell the user: `why` is the rest of a sentence. Memory is read by system calls from here on. */
void probes_close_readable(struct kymo_probes *probes, const char *why);

#endif
