/*
 * The kernel as a source of events, beside the pads of processes or in place of them (docs/internals/kernel.md).
 * Private to the room.
 *
 * Its streams are files of their own, one a CPU; its events are in the recording's one table; its threads are in the
 * trace's table.
 */
#ifndef KYMO_RECORD_KERNEL_H
#define KYMO_RECORD_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/spec/spec.h"
#include "trace/trace.h"

struct kymo_events;
struct kymo_kernel_pool;
struct kymo_offline;
struct recording_kernel;

struct recording_kernel_options {
	const struct kymo_spec *specs; /* must outlive the source, as `events` */
	size_t n_specs;
	struct kymo_events *events;
	pid_t pid;            /* 0: every process */
	bool follow;          /* with `pid`: the processes that descend from it, too */
	uint64_t buffer_size; /* bytes a CPU */
	bool overwrite;
	struct kymo_kernel_pool *pool; /* with `overwrite`: what all streams keep together, or NULL; outlives the source
					*/
	bool is_shut;                  /* nothing is recorded before recording_kernel_let_in() */
	void (*warn)(const char *sentence, void *data);
	void *data;
	void (*tell_many)(size_t n,
			  void *recording); /* so many sites are about to get breakpoints, which lasts; or NULL */
	void *recording;
};

/* Set up; nothing is probed yet. PERMISSION, NOT_FOUND as kymo_kernel_create(). */
struct kymo_error *recording_kernel_open(const struct recording_kernel_options *options, struct recording_kernel **ret);

/* Whether that would do, by the rights of this process and what the kernel has: the same errors. */
struct kymo_error *recording_kernel_check(pid_t pid, bool follow);

/* NULL is allowed. */
void recording_kernel_destroy(struct recording_kernel *source);

/* Look at files that `pid` has mapped since the last time; nothing is probed yet. `new_ret`: there are sites for
 * recording_kernel_look(). */
struct kymo_error *recording_kernel_read(struct recording_kernel *source, pid_t pid, bool *new_ret);

/* Put probes into files that `pid` has mapped since the last time. They work in all processes that are recorded. */
struct kymo_error *recording_kernel_look(struct recording_kernel *source, pid_t pid);

/* The same for specs that have met no file yet, by the files' names. NOT_FOUND for a name that is no file's. */
struct kymo_error *recording_kernel_find(struct recording_kernel *source);

/* Errors and warnings about sites that were left out so far: UNSAFE where a spec has none left. */
struct kymo_error *recording_kernel_tell_refused(struct recording_kernel *source);

/*
 * Write what there is: records to `output`'s directory and counts, threads to its trace. `n_ret` is the number of
 * records. With `overwrite` it is kept in memory and the oldest of it dropped.
 */
struct kymo_error *recording_kernel_drain(struct recording_kernel *source, struct kymo_trace *output, size_t *n_ret);

/* Close half full packets. */
struct kymo_error *recording_kernel_flush(struct recording_kernel *source, struct kymo_trace *output);

/* With `overwrite`: write what is kept to the directory of `copy`, and keep it. */
struct kymo_error *recording_kernel_copy(struct recording_kernel *source, struct kymo_trace *output,
					 struct kymo_trace *copy);

/* From one moment on, at all sites: records are made; none are. */
void recording_kernel_let_in(struct recording_kernel *source);
void recording_kernel_shut(struct recording_kernel *source);

/* Take all probes out, and write the rest. Also to be called after an error; probes are out in any case. */
struct kymo_error *recording_kernel_finish(struct recording_kernel *source, struct kymo_trace *output);

/* From now on records carry the process id in place of the thread's, as those of the process itself do. */
void recording_kernel_carry_pids(struct recording_kernel *source);

/* The processes that it has seen. The source's. */
struct kymo_kernel_threads *recording_kernel_threads(const struct recording_kernel *source);

/* The sites, for recordings that must keep away from them. They are the source's. */
const struct kymo_offline *recording_kernel_sites(const struct recording_kernel *source);

uint64_t recording_kernel_lost(const struct recording_kernel *source);
size_t recording_kernel_n_sites(const struct recording_kernel *source);

/* With `follow`: whether any of the processes is left. */
bool recording_kernel_has_processes(const struct recording_kernel *source);

/* ---- kernel_stream.c ------------------------------------------------------------------------- */

struct kymo_kernel_stream;

/* ---- kernel_threads.c ------------------------------------------------------------------------ */

/* The threads that were seen, by id: what is in the trace's table already. */
struct kymo_kernel_threads;

#endif
