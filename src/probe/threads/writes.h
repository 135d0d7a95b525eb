/* How long pads may write registers: while a recorder lives (docs/internals/writes.md). */
#ifndef KYMO_PROBE_THREADS_WRITES_H
#define KYMO_PROBE_THREADS_WRITES_H

struct kymo_probes;
struct kymo_process;

#define KYMO_WRITES_LEASE_S 2 /* seconds that a lease lasts */

/*
 * Pads of `process`, which has these probes or was forked from the process that has them, write for so long from now
 * on. The live pages are there. Nothing is done where no spec writes. A process that has ended is no error.
 */
void probes_begin_writes(const struct kymo_probes *probes, struct kymo_process *process);

/* The same again, where the live page is still there and says that the process is recorded. A process may have
 * unmapped the page, and have something else there. */
void kymo_probes_renew_writes(const struct kymo_probes *probes, struct kymo_process *process);

/* They write nothing any more: the recording ends. */
void kymo_probes_end_writes(const struct kymo_probes *probes, struct kymo_process *process);

#endif
