/*
 * Taking probes out, from the journal in the process alone. The way back is the same for a recorder that ends, for
 * `kymo detach`, and for the next recorder that finds what a dead one left.
 */
#ifndef KYMO_PROBE_INSTALL_REMOVE_H
#define KYMO_PROBE_INSTALL_REMOVE_H

#include <stdint.h>

#include "base/error.h"

struct kymo_detach_result;
struct kymo_process;

/* Stop it, also when another tracer is there for a moment: another kymo that comes or goes is one. */
struct kymo_error *probes_stop_patiently(struct kymo_process *process);

/*
 * Take one recording out, by its inode; or, with 0, all whose recorder is gone. Text is restored, or left to the other
 * recordings that have probes at the same sites; then, when no thread is in a pad or returns to one, memory is
 * unmapped. The process runs afterwards as it did before. Sites that hold foreign bytes are left, and so are then the
 * pads; `ret` tells all. Nothing to take out is no error.
 */
struct kymo_error *kymo_remove(struct kymo_process *process, uint64_t inode, struct kymo_detach_result *ret);

#endif
