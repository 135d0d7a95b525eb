/* What the parts of kymo threads share. */
#ifndef KYMO_CLI_THREADS_H
#define KYMO_CLI_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "kymo/engine.h"
#include "probe/probe.h"
#include "procfs/threads.h"

/* One look at a process; `shares` are since the look before. */
struct cli_threads {
	pid_t pid;
	char comm[64];
	struct kymo_thread_infos threads;
	uint64_t at_ns;
	double *shares; /* of one CPU, for each thread; NULL: there was no look before */
	struct kymo_status *recordings;
	size_t n_recordings;
	bool knows_recordings;
	pid_t tracer_tid, tracer_pid; /* the tracer that was asked for last */
	char tracer_comm[32];
	struct kymo_engine_info *engines; /* sorted by tid */
	size_t n_engines;
	pid_t hub;    /* the tracer that has told them; 0: none has */
	pid_t silent; /* a tracer that has not answered in time */
};

#endif
