/*
 * System calls as the kernel's tracepoints see them: a way of source.h, with a stream a CPU.
 */
#ifndef KYMO_STRACE_RECORDED_KERNEL_H
#define KYMO_STRACE_RECORDED_KERNEL_H

#include "strace/recorded/source.h"

/* Calls are seen from here on. PERMISSION, NOT_FOUND, GONE as kymo_kernel_calls_create(). */
struct kymo_error *kymo_call_source_open_kernel(const struct kymo_call_source_options *options,
						struct kymo_call_source **ret);

/* Whether that would do, by the rights of this process and what the kernel has: the same errors. */
struct kymo_error *kymo_call_source_check_kernel(void);

#endif
