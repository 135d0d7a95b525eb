/* A recording from outside. Private to the room. */
#ifndef KYMO_RECORD_KERNEL_RUN_H
#define KYMO_RECORD_KERNEL_RUN_H

#include <stdbool.h>

#include "base/error.h"

struct recording;

/* The whole of a recording from outside, through the kernel or by tracing alone, from launch or attach to its last
 * packet. */
struct kymo_error *recording_run_kernel(struct recording *recording);

/* Whether the child, if there is one, has ended; with its status in the result. */
bool recording_child_ended(struct recording *recording);

#endif
