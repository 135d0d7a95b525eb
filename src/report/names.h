/*
 * Names of threads and processes as a terminal may have them.
 */
#ifndef KYMO_REPORT_NAMES_H
#define KYMO_REPORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctf/ctf.h"
#include "report/lines.h"
#include "report/threads.h"

struct names {
	const struct kymo_ctf_trace *trace;
	char **threads, **processes; /* as the trace's tables */
	struct event_text *events;   /* as trace->events */
	bool has_processes;          /* the trace is of several */
};

/* The trace must outlive the names. */
struct kymo_error *kymo_names_init(struct names *names, const struct kymo_ctf_trace *trace, bool unicode);
void kymo_names_deinit(struct names *names);

/* The thread's name, or NULL. */
const char *kymo_names_thread(const struct names *names, const struct thread *thread);

/* Room for kymo_names_label(). */
#define THREAD_LABEL 192

/* "  4243 worker", and where there are several processes "  4240/4243   worker", the process of the last record. */
void kymo_names_label(const struct names *names, const struct thread *thread, char label[THREAD_LABEL]);

#endif
