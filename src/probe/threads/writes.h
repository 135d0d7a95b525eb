/* How long pads may write registers: while a recorder lives (docs/internals/writes.md). */
#ifndef KYMO_PROBE_THREADS_WRITES_H
#define KYMO_PROBE_THREADS_WRITES_H

struct kymo_probes;
struct kymo_process;

#define KYMO_WRITES_LEASE_S 2 /* seconds that a lease lasts */

/*
 * Pads of `process`, which has these probes or was forked from the process that has them, write for so long from now
 * on. Nothing is done where no spec writes. A process that has ended is no error.
 */
void kymo_probes_renew_writes(const struct kymo_probes *probes, struct kymo_process *process);

/* They write nothing any more: the recording ends. */
void kymo_probes_end_writes(const struct kymo_probes *probes, struct kymo_process *process);

#endif
