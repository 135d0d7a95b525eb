/* Branches by function clones in a recording that has probes, too. Private to the room. */
#ifndef KYMO_RECORD_BESIDE_H
#define KYMO_RECORD_BESIDE_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_process;
struct kymo_tree_event;
struct recording;

/* Whether the recording is one of these. All other functions do nothing where it is not. */
bool recording_is_beside(const struct recording *recording);

/* The command stands at its first instruction, or the process runs: whether it can have clones. UNSAFE. */
struct kymo_error *beside_check(struct recording *recording);

/* The files are linked, or the process runs: what is chosen is looked up. FAILED: there is no such function. */
struct kymo_error *beside_open(struct recording *recording);

/* The probes are in, too: the clones go in. A process that runs has its branches recorded from
 * then on, and its rings are drained meanwhile. */
struct kymo_error *beside_put_in(struct recording *recording);

/* The trace has files: what it says of branches. */
struct kymo_error *beside_describe(struct recording *recording);

/* Right before a command runs. */
struct kymo_error *beside_begin(struct recording *recording);

/* What the tree tells, before others deal with it. */
void beside_note(struct recording *recording, const struct kymo_tree_event *event);

/* Now and then: a program that handles faults has no clones any more, before its probes are exchanged for that. */
void beside_heed(struct recording *recording);

/* Before the probes are taken out of that process, the command's or a child's. */
struct kymo_error *beside_leave(struct recording *recording, struct kymo_process *process);

/* No process has probes any more: the branches are written. */
struct kymo_error *beside_end(struct recording *recording);

/* Free all. */
void beside_destroy(struct recording *recording);

#endif
