/*
 * System calls as the kernel's tracepoints see them: a way of calls.h, with a stream a CPU. Private to the room.
 */
#ifndef KYMO_RECORD_KERNEL_CALLS_H
#define KYMO_RECORD_KERNEL_CALLS_H

#include "record/calls.h"

/* Calls are seen from here on. PERMISSION, NOT_FOUND, GONE as kymo_kernel_calls_create(). */
struct kymo_error *kernel_calls_open(const struct recording_calls_options *options, struct recording_calls **ret);

/* Whether that would do, by the rights of this process and what the kernel has: the same errors. */
struct kymo_error *kernel_calls_check(void);

#endif
