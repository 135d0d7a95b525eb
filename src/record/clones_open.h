/* Which programs may have function clones, and how they come to stand where these are put in. Private to the room. */
#ifndef KYMO_RECORD_CLONES_OPEN_H
#define KYMO_RECORD_CLONES_OPEN_H

#include "base/error.h"

struct kymo_process;
struct recording;

/* Whether a process that others have launched, or opened, can have clones: before a command runs, or of one that runs.
 * UNSAFE. */
struct kymo_error *clones_check(struct kymo_process *process);
struct kymo_error *clones_check_running(struct kymo_process *process);

/* The process and the tree of the recording: the command, launched up to where its files are linked, or the process
 * that runs, of which the tree has nothing yet. UNSAFE: it can have no clones, and the command has run nothing. */
struct kymo_error *clones_open_process(struct recording *recording);

#endif
