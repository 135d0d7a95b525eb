/* Function clones in a program, launched or running, as the source of its branches. Private to the room. */
#ifndef KYMO_RECORD_CLONES_H
#define KYMO_RECORD_CLONES_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_branch_clones;
struct kymo_branches;
struct kymo_probes;
struct kymo_process;
struct kymo_tree_event;
struct recording;

/* One recording's. */
struct record_clones;

/* Launch the command, up to where its files are linked; it stays stopped there. Or open the process, which runs on.
 * UNSAFE: it can have no clones, and the command has run nothing. `ret` is to be destroyed. */
struct kymo_error *clones_launch(struct recording *recording, struct record_clones **ret);

/* The same for a command that others have launched, whose files are linked and which the tree of the recording has. */
struct kymo_error *clones_create(struct recording *recording, struct record_clones **ret);

/* What branches are made of. */
const struct kymo_branch_clones *clones_source(const struct record_clones *clones);

/* Put clones of what `branches` has chosen into the process. One that runs has its branches recorded from then on. On
 * an error they are out again, or it says so. `beside` are the probes of the recording that it has already; or NULL. */
struct kymo_error *clones_put_in(struct record_clones *clones, struct kymo_branches *branches,
				 struct kymo_probes *beside);

/* Let a launched program run. */
void clones_go(struct record_clones *clones);

/* Whether there is nothing more to record: a command may have executed another program, and is waited for. */
bool clones_are_over(const struct record_clones *clones);

/* Wait for some milliseconds at the most, and deal with what has happened. */
void clones_wait(struct record_clones *clones);

/* No wait comes after it: take the clones out of a program that runs on, and tell what was not recorded. */
struct kymo_error *clones_end(struct record_clones *clones);

/* The parts of clones_wait() and clones_end(), beside probes. What the tree tells, before others deal with it. */
void clones_note(struct record_clones *clones, const struct kymo_tree_event *event);

/* Take them out if the program handles faults, is about to (`are_coming`), or a thread waits for that. */
void clones_heed_handlers(struct record_clones *clones, bool are_coming);

/* Take them out of the program, and of a forked child; tell of threads that had no ring. */
struct kymo_error *clones_leave(struct record_clones *clones);
void clones_leave_child(struct record_clones *clones, struct kymo_process *child);
void clones_tell_sunk(const struct record_clones *clones);

/* After the branches that have them. NULL is allowed. */
void clones_destroy(struct record_clones *clones);

#endif
