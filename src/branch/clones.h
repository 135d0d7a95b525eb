/* Function clones as the source: threads run freely, and their rings are read when they have ended. Private to the
 * room. */
#ifndef KYMO_BRANCH_CLONES_H
#define KYMO_BRANCH_CLONES_H

struct kymo_branches;

/* Engines for the threads of the stopped process, and from then on for new ones. A negative errno of
 * kymo_engine_attach(). */
int branch_clones_attach(struct kymo_branches *branches);

/* Read the rings of threads that have not ended, and let go of all. */
void branch_clones_detach(struct kymo_branches *branches);

#endif
