/* The table of memory that pads read by plain loads (docs/design/fast-reads.md). Private to the room. */
#ifndef KYMO_PROBE_THREADS_READABLE_H
#define KYMO_PROBE_THREADS_READABLE_H

#include <stdint.h>

struct kymo_probes;
struct kymo_wire_readable;

/* None is used where it is known that the process's threads have no sequences. */
void probes_forgo_readable(struct kymo_probes *probes);

/* The memory is there: its first pages are allocated. Where that fails no table is used. */
void probes_prepare_readable(struct kymo_probes *probes);

/* KYMO_PAD_LIVE_READABLE of the process with these probes. */
uint64_t probes_readable_address(const struct kymo_probes *probes);

/* The process is stopped, before its system calls have pads: the kernel may fence its sequences from now on. */
void probes_register_readable(struct kymo_probes *probes);

/* The recorder's view of it. */
struct kymo_wire_readable *probes_readable_table(const struct kymo_probes *probes);

/* Until all pads are seen to be in again. To be called before one of a system call leaves the text, or may have. */
void probes_shut_readable(struct kymo_probes *probes);

/* For good: memory is read by system calls from here on. The user is told, unless `why`, the rest of a sentence, is
 * NULL. */
void probes_close_readable(struct kymo_probes *probes, const char *why);

/* Tell the user, once, that it is not used. A user who has not asked for it is not told. */
void probes_tell_readable(struct kymo_probes *probes, const char *why);

#endif
