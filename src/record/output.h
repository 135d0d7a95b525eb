/* What a recording writes. Private to the room. */
#ifndef KYMO_RECORD_OUTPUT_H
#define KYMO_RECORD_OUTPUT_H

#include "base/vec.h"
#include "trace/clock.h"
#include "trace/trace.h"

struct aggregating;
struct stacking;

/* A recording that begins anew has the same directory, without what was written there. */
struct recording_output {
	struct kymo_trace files;
	bool exists; /* there is a directory */
	struct kymo_clock_sample begin;
	bool is_checked;                 /* the directory can be made; seen before the command has run */
	bool is_described;               /* the metadata tell of the target */
	KYMO_VEC(bool) described;        /* events that the metadata have, by index */
	size_t n_described;              /* how many the metadata on the disk have */
	struct aggregating *aggregating; /* or NULL: nothing is aggregated */
	struct stacking *stacking;       /* or NULL: no records have stacks */
	uint64_t lost, lost_in_vforks;   /* by sources that are no more */
};

#endif
