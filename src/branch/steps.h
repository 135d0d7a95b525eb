/* The engines: threads that are stepped, or run until they come to chosen code. Private to the room. */
#ifndef KYMO_BRANCH_STEPS_H
#define KYMO_BRANCH_STEPS_H

#include <sys/types.h>

struct branch_thread;
struct kymo_branches;

/* An engine for thread `tid`, whose first stop comes at once; it is known already where it has one. A negative errno of
 * kymo_engine_attach(). */
int branch_steps_attach(struct kymo_branches *branches, pid_t tid);

/* The same in the CLONE event of `maker`, for a process that it has made: it returns to chosen code where `maker` does.
 */
int branch_steps_attach_child(struct kymo_branches *branches, const struct branch_thread *maker, pid_t pid);

/* The same for each thread of the process. */
int branch_steps_attach_process(struct kymo_branches *branches);

/* Let go of all. */
void branch_steps_detach(struct kymo_branches *branches);

#endif
