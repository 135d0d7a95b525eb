/* Threads that are seen from outside. */
#ifndef KYMO_TRACE_KERNEL_THREADS_H
#define KYMO_TRACE_KERNEL_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_kernel_threads;
struct kymo_ctf_trace;

struct kymo_error *kymo_kernel_threads_create(struct kymo_kernel_threads **ret);
void kymo_kernel_threads_destroy(struct kymo_kernel_threads *threads);

/*
 * A record of thread `tid` of process `pid` with that name (at most 15 bytes). New ones, and new names, go to the
 * trace.
 */
struct kymo_error *kymo_kernel_threads_see(struct kymo_kernel_threads *threads, struct kymo_ctf_trace *trace,
					   int32_t tid, int32_t pid, const char *name, uint64_t tsc);

/* Whether it was seen, and has not ended since. */
bool kymo_kernel_threads_knows(const struct kymo_kernel_threads *threads, int32_t tid, int32_t pid);

/* It begins the system call of that number. It need not have been seen. */
struct kymo_error *kymo_kernel_threads_enter(struct kymo_kernel_threads *threads, int32_t tid, int32_t pid,
					     uint64_t number);

/*
 * It comes back from one: whether from the one that it has begun, or, where the kernel does not know the number any
 * more (UINT64_MAX), any. One that has executed a program has the id of its process since then, and begun the call with
 * its own: `tid` becomes that.
 */
bool kymo_kernel_threads_leave(struct kymo_kernel_threads *threads, int32_t *tid, int32_t pid, uint64_t number,
			       bool has_executed);

/* It has ended at `tsc`: a thread that has the id after that is another one. */
void kymo_kernel_threads_end(struct kymo_kernel_threads *threads, int32_t tid, uint64_t tsc);

#endif
