/*
 * Removing probes by the journal in the process alone. A recorder that ends does the same as `kymo detach`, and as the
 * next recorder that finds what a dead one left.
 */
#ifndef KYMO_PROBE_INSTALL_REMOVE_H
#define KYMO_PROBE_INSTALL_REMOVE_H

#include <stdint.h>

#include "base/error.h"

struct kymo_detach_result;
struct kymo_process;

/*
 * Remove one recording, by its inode; or, with 0, all recordings of dead recorders. Text is restored, or left to the
 * other recordings that have probes at the same sites. When no thread is in a pad or returns to one, memory is
 * unmapped. The process runs afterward as it did before. Sites with bytes of a third party stay, and so do then the
 * pads; `ret` says so. It is no error if there is nothing to remove.
 */
struct kymo_error *kymo_remove(struct kymo_process *process, uint64_t inode, struct kymo_detach_result *ret);

/* The same without waiting for threads to leave pads: for a process whose threads a debugger holds. */
struct kymo_error *kymo_remove_at_once(struct kymo_process *process, uint64_t inode, struct kymo_detach_result *ret);

#endif
