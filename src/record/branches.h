/* Recordings of branches (docs/internals/branches.md). Private to the room. */
#ifndef KYMO_RECORD_BRANCHES_H
#define KYMO_RECORD_BRANCHES_H

#include "base/error.h"

struct recording;

/* From launching or attaching to the last record. */
struct kymo_error *recording_run_branches(struct recording *recording);

#endif
