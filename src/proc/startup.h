/* The first moments of a launched program. */
#ifndef KYMO_PROC_STARTUP_H
#define KYMO_PROC_STARTUP_H

#include "base/error.h"
#include "proc/linker.h"

struct kymo_process;

/*
 * Run the launched process until its next start-up event (linker.h); it is stopped then (as by kymo_process_stop(), one
 * thread). Nothing is set up in the process for it: if this one dies meanwhile the command runs on as if nothing had
 * been.
 */
struct kymo_error *kymo_process_startup(struct kymo_process *process, enum kymo_startup_event *ret);

/* Watch the system calls of a program that starts, and put no start stub into it: its call would be recorded. For
 * before the first event. */
void kymo_process_startup_without_stub(struct kymo_process *process);

/* Run a followed process, stopped by EXECED or STARTUP, to its next start-up event, which kymo_tree_next() will tell;
 * nothing is waited for. */
struct kymo_error *kymo_process_startup_on(struct kymo_process *process);

#endif
