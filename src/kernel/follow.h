/* Keeping up with the descendants of a process. Private to the room. */
#ifndef KYMO_KERNEL_FOLLOW_H
#define KYMO_KERNEL_FOLLOW_H

#include "base/error.h"

struct kymo_kernel;

/* Keep the table of processes right from now on. */
struct kymo_error *kernel_follow(struct kymo_kernel *kernel);

#endif
