/* Stopping the threads of a process, and letting them go. */
#ifndef KYMO_PROC_STOP_H
#define KYMO_PROC_STOP_H

#include "base/error.h"

struct kymo_process;

/*
 * Stop every thread, again and again until no new one appears. Returns with all stopped, or with all running as before:
 * BUSY for a thread that does not stop within two seconds (uninterruptible sleep, vfork: the sentence says which and
 * where), another process that shares the memory, a foreign tracer.
 */
struct kymo_error *kymo_process_stop(struct kymo_process *process);

/* With one thread stopped by kymo_process_startup(): stop those that constructors have made. */
struct kymo_error *kymo_process_stop_others(struct kymo_process *process);

/*
 * Stop the first thread only, and, where that sleeps in a system call, another one to make calls by. A freeze of it
 * keeps other tracers from the process as a whole, as all begin with it; and a hub lets one owner at a time freeze a
 * process, or its first thread. GONE where it has ended before the others.
 */
struct kymo_error *kymo_process_stop_first(struct kymo_process *process);

/* Let all threads run, as the process had them, and be nobody's tracer; one that is followed stays so. */
void kymo_process_resume(struct kymo_process *process);

#endif
