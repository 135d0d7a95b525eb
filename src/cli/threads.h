/* What the parts of kymo threads share. */
#ifndef KYMO_CLI_THREADS_H
#define KYMO_CLI_THREADS_H

#include <stdio.h>

#include "kymo/engine.h"
#include "probe/probe.h"
#include "proc/proc.h"

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

/* Look at the process of `pid`, which may be any of its threads. GONE: also where it is another process than the one of
 * the look before. */
struct kymo_error *cli_threads_look(struct cli_threads *view, pid_t pid);

/* The engines of its threads, asked of their hub. `before` is the look before. */
void cli_threads_look_at_engines(struct cli_threads *view, const struct cli_threads *before);

/* A thread's: "-" without any, "?" where its tracer does not tell. JSON has a list, or null. */
void cli_threads_print_engines(const struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out);
void cli_threads_print_engines_json(const struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out);

/* No look yet is all zero. */
void cli_threads_deinit(struct cli_threads *view);

/* As lines, at most `rows` of them (0: any number); those that use most of a CPU first where that is known. */
void cli_threads_print(struct cli_threads *view, FILE *out, int rows);
void cli_threads_print_json(struct cli_threads *view, FILE *out);

/* Draw once a second until the user, a signal or the end of the process ends it. The exit status. */
int cli_threads_live(struct cli_threads *view);

#endif
