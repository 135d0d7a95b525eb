/* System calls in the name of a stopped thread. */
#ifndef KYMO_PROC_CALL_H
#define KYMO_PROC_CALL_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/*
 * Take one stopped thread for system calls; the process must be stopped, and its other threads stay where they are.
 * arch/remote.h says how the thread finds home if this process dies. UNSAFE when no way is found: no gadget, no room on
 * any stack, or a seccomp filter that might kill the thread. If a thread makes calls already, it is taken, until
 * kymo_remote_end() was called as often as this function. No thread's registers may be changed meanwhile.
 */
struct kymo_error *kymo_remote_begin(struct kymo_process *process);

/* Execute one call. `result_ret` is as the kernel gave it (negative errno). An error means that the thread is gone, or
 * did not come back. */
struct kymo_error *kymo_remote_syscall(struct kymo_process *process, long number, const uint64_t args[6],
				       int64_t *result_ret);

/* Bytes of scratch memory below the frame: the first 256 are for callers, then comes the table of a batch. */
#define KYMO_REMOTE_SCRATCH 1024

/* Address of that memory of the thread, on its stack. */
uint64_t kymo_remote_scratch(const struct kymo_process *process);

/* Look for the instructions that calls are made with, while the process runs: kymo_remote_begin() has to look at them
 * once more then, not for them. */
struct kymo_error *kymo_remote_prepare(struct kymo_process *process);

/*
 * What was found for the maker of this process is true of both, and looking again takes milliseconds. It is checked
 * before it is used. If each system call of the text has a probe, no gadget is left. Then the `syscall; ret` at
 * `syscall` in the shared code of pads is used, which stays during what is asked of the child here.
 */
void kymo_remote_inherit(struct kymo_process *child, const struct kymo_process *maker, uint64_t syscall);

/* Give the thread its own registers and signal mask back. */
struct kymo_error *kymo_remote_end(struct kymo_process *process);

/* ---- for stop.c ------------------------------------------------------------------------------ */

/* Look among the threads that run, as kymo_thread_rather_than() does: a thread that is better than all stopped threads
 * of `process`, or 0. */
pid_t kymo_thread_for_calls_rather(struct kymo_process *process);

#endif
