/* What the shared memory of a recording says. */
#ifndef KYMO_PROBE_MEMORY_STATE_H
#define KYMO_PROBE_MEMORY_STATE_H

#include "probe/memory/data.h"

/* Rings exist after the first install. */
size_t kymo_probes_n_rings(const struct kymo_probes *probes);
struct kymo_shared_ring kymo_probes_ring(const struct kymo_probes *probes, size_t i);

/* The program has made reading the time stamp counter a fault: nothing more is recorded of it. */
bool kymo_probes_are_muted(const struct kymo_probes *probes);

/* Hits of vfork children before their exec, so far: they are not recorded. */
uint64_t kymo_probes_lost_in_vforks(const struct kymo_probes *probes);

/* For kymo status. */
void kymo_probes_publish(struct kymo_probes *probes, uint64_t recorded_bytes, uint64_t lost);

/* The memfd's inode: what the mappings of these probes are known by. */
uint64_t kymo_probes_inode(const struct kymo_probes *probes);

/* Whether the process still has the memory that the probes live in: false after an exec. */
bool kymo_probes_are_mapped(struct kymo_probes *probes);

#endif
