/* Letting time go by between two tries, without leaving the process alone. */
#ifndef KYMO_PROC_NAP_H
#define KYMO_PROC_NAP_H

#include <stdint.h>

struct kymo_process;

/*
 * Sleep for `ns`. Of a process that is followed, threads stop at their signals and births until their tracer deals with
 * that: it does so meanwhile, for all processes of the tree. What it learns is told later, by kymo_tree_next().
 */
void kymo_process_nap(struct kymo_process *process, uint64_t ns);

#endif
