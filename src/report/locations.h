/*
 * Which events are one probe. A marker that the compiler has copied, or whose name stands at several locations of a
 * file, has an event for each location; where these have the same fields they are counted as one probe. All other
 * events are each a probe of its own, whatever their names.
 */
#ifndef KYMO_REPORT_LOCATIONS_H
#define KYMO_REPORT_LOCATIONS_H

#include <stddef.h>

#include "ctf/ctf.h"

#define NO_LOCATION SIZE_MAX

/* Of one event. Numbers are indices in trace->events. */
struct location {
	size_t first; /* event of the same probe; itself where there is no other */
	size_t next;  /* likewise, or NO_LOCATION */
	size_t n;     /* locations of the probe; of the first one */
};

/* As trace->events, a fresh array; `n_ret` is how many probes there are. NULL when memory is out. */
struct location *kymo_locations_create(const struct kymo_ctf_trace *trace, size_t *n_ret);

#endif
