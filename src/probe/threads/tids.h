/* Where threads keep their tids. Private to the room. */
#ifndef KYMO_PROBE_THREADS_TIDS_H
#define KYMO_PROBE_THREADS_TIDS_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_maps;
struct kymo_probes;
struct kymo_process;

/*
 * Set probes->threads.tid_offset to what glibc tells, unless it is known: false where there is no glibc, or it tells
 * nothing. Reading the library takes time, so it is done once, and if possible before the process is stopped.
 */
bool probes_tid_offset_of_glibc(struct kymo_probes *probes, const struct kymo_maps *maps);

/* Set it to the offset at which all threads of the stopped `process` have their tids; false where there is none, or it
 * is not proven yet. */
bool probes_find_tid_offset(struct kymo_probes *probes, struct kymo_process *process);

/* Whether each thread of the stopped `process` has its tid there; in Go's place new ones may have 0. */
bool probes_is_tid_offset(struct kymo_process *process, int64_t offset);

#endif
