/*
 * A recording from start to end: the command or process, the probes, the rings, the trace.
 */
#ifndef KYMO_RECORD_RECORD_H
#define KYMO_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "probe/spec.h"

struct kymo_record_progress {
	double seconds;			/* since recording began */
	uint64_t bytes;			/* recorded */
	uint64_t events;		/* the same, about: estimated from the first records of each packet */
	uint64_t lost;			/* events */
	size_t n_sites;
	const char *phase;		/* "planning", "recording", "stopping" */
};

struct kymo_record_options {
	const char *directory;		/* "kymo.data" */
	const struct kymo_spec *specs;
	size_t n_specs;
	char *const *command;		/* argv to launch, or NULL */
	pid_t pid;			/* process to attach to, where command is NULL */
	double seconds;			/* stop after that long; 0: no limit */
	uint64_t buffer_size;		/* bytes a CPU */
	bool overwrite;
	bool no_rseq;			/* for measuring: never use restartable sequences */
	/* Called about five times a second and once at the end, from the thread that called kymo_record(). May be NULL. */
	void (*progress)(const struct kymo_record_progress *progress, void *data);
	/* A sentence that the user should see although recording goes on. May be NULL. */
	void (*warn)(const char *sentence, void *data);
	void *data;
};

struct kymo_record_result {
	int command_status;		/* as waitpid() gives it; of a launched command */
	bool command_ended;
	uint64_t bytes, lost;
	uint64_t events;		/* about, as in the progress */
	size_t n_sites;
	double seconds;
	uint64_t stopped_ns;		/* how long the threads were held while probes went in */
};

/* Set by the command's signal handlers to end a recording early and in order. */
extern volatile int kymo_record_stop;

/*
 * Record until the time is up, the process ends, or kymo_record_stop is set. On an error nothing of kymo's is left in the process; a
 * launched command that had not begun is ended, one that had begun runs on. What was recorded before the error is complete in the directory.
 */
struct kymo_error *kymo_record(const struct kymo_record_options *options, struct kymo_record_result *ret);

#endif
