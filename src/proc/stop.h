/* Stopping the threads of a process, and letting them go. */
#ifndef KYMO_PROC_STOP_H
#define KYMO_PROC_STOP_H

#include "base/error.h"

struct kymo_process;

/*
 * Stop every thread, again and again until no new one appears. Returns with all threads stopped, or with all running as
 * before. BUSY: a thread does not stop within two seconds (uninterruptible sleep, vfork: the sentence says which and
 * where), another process shares the memory, or another tracer traces a thread.
 */
struct kymo_error *kymo_process_stop(struct kymo_process *process);

/* With one thread stopped by kymo_process_startup(): stop those that constructors have made. */
struct kymo_error *kymo_process_stop_others(struct kymo_process *process);

/*
 * Stop the first thread only; if it sleeps in a system call, also another one to make calls by. That keeps other
 * tracers from the whole process, as all tracers begin with the first thread. And a hub lets one owner at a time freeze
 * a process, or its first thread. GONE: the first thread has ended before the others.
 */
struct kymo_error *kymo_process_stop_first(struct kymo_process *process);

/* Let all threads run, as the process had them, and stop tracing it. A followed process stays traced. */
void kymo_process_resume(struct kymo_process *process);

#endif
