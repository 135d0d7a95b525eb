/* Letting time go by without leaving a process alone that is followed. */
#ifndef KYMO_PROC_NAP_H
#define KYMO_PROC_NAP_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_process;

/*
 * Wait for something of a followed process, `timeout_ns` at most. Threads of a tree stop at their signals and births
 * until their tracer deals with that: it does so meanwhile. What it learns is told later, by kymo_tree_next().
 */
void kymo_process_wait_until(const struct kymo_process *process, bool (*is_done)(const struct kymo_process *process),
			     uint64_t timeout_ns);

/* Sleep for `ns` between two tries. The same is done meanwhile for a process that is followed. */
void kymo_process_nap(const struct kymo_process *process, uint64_t ns);

#endif
