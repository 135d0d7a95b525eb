/* What recordings of branches have in common, alone and beside probes. Private to the room. */
#ifndef KYMO_RECORD_BRANCH_PARTS_H
#define KYMO_RECORD_BRANCH_PARTS_H

#include "base/error.h"
#include "record/record.h"

struct kymo_branches;
struct record_clones;
struct recording;

/* What is asked for, by that source, which is known. The process of `clones` is stopped or runs; without clones it is
 * recorded from here on. */
struct kymo_error *recording_open_branches(struct recording *recording, enum kymo_record_branch_source source,
					   const struct record_clones *clones, struct kymo_branches **ret);

/* What the trace says of the source. */
struct kymo_error *recording_describe_branches(struct recording *recording, enum kymo_record_branch_source source);

void recording_tell_branch_warnings(struct recording *recording, struct kymo_branches *branches);

/* Let go of all threads; and then write what they did. */
void recording_end_branches(struct recording *recording, struct kymo_branches *branches);
struct kymo_error *recording_write_branches(struct recording *recording, struct kymo_branches *branches);

#endif
