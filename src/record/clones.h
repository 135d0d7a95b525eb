/* Function clones in a launched program, as the source of its branches. Private to the room. */
#ifndef KYMO_RECORD_CLONES_H
#define KYMO_RECORD_CLONES_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_branch_clones;
struct kymo_branches;
struct recording;

/* One recording's. */
struct record_clones;

/* Launch the command, up to where its files are linked; it stays stopped there. UNSAFE: it can have no clones, and has
 * run nothing. `ret` is to be destroyed. */
struct kymo_error *clones_launch(struct recording *recording, struct record_clones **ret);

/* What branches are made of. */
const struct kymo_branch_clones *clones_source(const struct record_clones *clones);

/* Put clones of what `branches` has chosen into the process; nothing of the program has run. */
struct kymo_error *clones_put_in(struct record_clones *clones, struct kymo_branches *branches);

/* Let the program run. */
void clones_go(struct record_clones *clones);

/* Wait for some milliseconds at the most, and deal with what has happened. */
void clones_wait(struct record_clones *clones);

/* No wait comes after it: take the clones out of a program that runs on, and tell what was not recorded. */
struct kymo_error *clones_end(struct record_clones *clones);

/* After the branches that have them. NULL is allowed. */
void clones_destroy(struct record_clones *clones);

#endif
