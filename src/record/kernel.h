/*
 * The kernel as a source of events, beside the pads of processes or in place of them (docs/internals/kernel.md).
 * Private to the room.
 *
 * Its streams are files of their own, one a CPU; its events are in the recording's one table; its threads are in the
 * trace's table.
 */
#ifndef KYMO_RECORD_KERNEL_H
#define KYMO_RECORD_KERNEL_H

#include "probe/offline/offline.h"
#include "probe/spec/spec.h"
#include "record/output.h"

struct recording_kernel;

struct recording_kernel_options {
	const struct kymo_spec *specs; /* must outlive the source, as `events` */
	size_t n_specs;
	struct kymo_events *events;
	pid_t pid;            /* 0: every process */
	bool follow;          /* with `pid`: the processes that descend from it, too */
	uint64_t buffer_size; /* bytes a CPU */
	bool overwrite;
	bool is_shut; /* nothing is recorded before recording_kernel_let_in() */
	void (*warn)(const char *sentence, void *data);
	void *data;
	void (*tell_many)(size_t n,
			  void *recording); /* so many places are about to get breakpoints, which lasts; or NULL */
	void *recording;
};

/* Set up; nothing is probed yet. PERMISSION, NOT_FOUND as kymo_kernel_create(). */
struct kymo_error *recording_kernel_open(const struct recording_kernel_options *options, struct recording_kernel **ret);

/* Whether that would do, by the rights of this process and what the kernel has: the same errors. */
struct kymo_error *recording_kernel_check(pid_t pid, bool follow);

/* NULL is allowed. */
void recording_kernel_destroy(struct recording_kernel *source);

/* Look at files that `pid` has mapped since the last time; nothing is probed yet. `new_ret`: there are places for
 * recording_kernel_look(). */
struct kymo_error *recording_kernel_read(struct recording_kernel *source, pid_t pid, bool *new_ret);

/* Put probes into files that `pid` has mapped since the last time. They work in all processes that are recorded. */
struct kymo_error *recording_kernel_look(struct recording_kernel *source, pid_t pid);

/* The same for specs that have met no file yet, by the files' names. NOT_FOUND for a name that is no file's. */
struct kymo_error *recording_kernel_find(struct recording_kernel *source);

/* Errors and warnings about places that were left out so far: UNSAFE where a spec has none left. */
struct kymo_error *recording_kernel_tell_refused(struct recording_kernel *source);

/*
 * Write what there is: records to `output`'s directory and counts, threads to its trace. `n_ret` is the number of
 * records. With `overwrite` it is kept in memory and the oldest of it dropped.
 */
struct kymo_error *recording_kernel_drain(struct recording_kernel *source, struct output *output, size_t *n_ret);

/* Close half full packets. */
struct kymo_error *recording_kernel_flush(struct recording_kernel *source, struct output *output);

/* With `overwrite`: write what is kept to the directory of `copy`, and keep it. */
struct kymo_error *recording_kernel_copy(struct recording_kernel *source, struct output *output, struct output *copy);

/* From one moment on, at all places: records are made; none are. */
void recording_kernel_let_in(struct recording_kernel *source);
void recording_kernel_shut(struct recording_kernel *source);

/* Take all probes out, and write the rest. Also to be called after an error; probes are out in any case. */
struct kymo_error *recording_kernel_finish(struct recording_kernel *source, struct output *output);

/* From now on records carry the process id in place of the thread's, as those of the process itself do. */
void recording_kernel_carry_pids(struct recording_kernel *source);

/* Whom it has seen. The source's. */
struct kernel_threads *recording_kernel_threads(const struct recording_kernel *source);

/* The places, for whoever must keep away from them. They are the source's. */
const struct kymo_offline *recording_kernel_places(const struct recording_kernel *source);

uint64_t recording_kernel_lost(const struct recording_kernel *source);
size_t recording_kernel_n_sites(const struct recording_kernel *source);

/* With `follow`: whether any of the processes is left. */
bool recording_kernel_has_processes(const struct recording_kernel *source);

/* ---- kernel_stream.c ------------------------------------------------------------------------- */

struct kernel_stream;

/* The file will be called NAME_INDEX; `name` is static. */
struct kymo_error *kernel_stream_create(const char *name, size_t index, uint32_t cpu, uint64_t keep,
					struct kernel_stream **ret);
void kernel_stream_destroy(struct kernel_stream *stream);

/*
 * Append a record, its header's time still 0. `lost` is the running total of events lost before it. Records may come a
 * little out of order; stamps in the file never go back. With `keep` bytes given, packets stay in memory, the newest of
 * that many.
 */
struct kymo_error *kernel_stream_add(struct kernel_stream *stream, struct output *output, const uint8_t *record,
				     size_t size, uint64_t tsc, uint64_t lost);
struct kymo_error *kernel_stream_flush(struct kernel_stream *stream, struct output *output);

/* Records were overwritten before they came here: the trace shows a packet that is not there, and an empty one at
 * `tsc`, behind which nothing is missing. */
struct kymo_error *kernel_stream_skip(struct kernel_stream *stream, struct output *output, uint64_t tsc);

/* Write the packets that are kept to the directory of `copy`, too, and keep them. */
struct kymo_error *kernel_stream_copy(struct kernel_stream *stream, struct output *output, struct output *copy);

/* Write what is kept, and losses behind the last record. */
struct kymo_error *kernel_stream_finish(struct kernel_stream *stream, struct output *output, uint64_t tsc,
					uint64_t lost);

/* ---- kernel_threads.c ------------------------------------------------------------------------ */

/* Who was seen, by thread id: what is in the trace's table already. */
struct kernel_threads;

struct kymo_error *kernel_threads_create(struct kernel_threads **ret);
void kernel_threads_destroy(struct kernel_threads *threads);

/*
 * A record of thread `tid` of process `pid` with that name (at most 15 bytes). New ones, and new names, go to the
 * trace.
 */
struct kymo_error *kernel_threads_see(struct kernel_threads *threads, struct kymo_ctf_trace *trace, int32_t tid,
				      int32_t pid, const char *name, uint64_t tsc);

/* Whether it was seen, and has not ended since. */
bool kernel_threads_knows(const struct kernel_threads *threads, int32_t tid, int32_t pid);

/* It begins the system call of that number. It need not have been seen. */
struct kymo_error *kernel_threads_enter(struct kernel_threads *threads, int32_t tid, int32_t pid, uint64_t number);

/*
 * It comes back from one: whether from the one that it has begun, or, where the kernel does not know the number any
 * more (UINT64_MAX), any. One that has executed a program has the id of its process since then, and begun the call with
 * its own: `tid` becomes that.
 */
bool kernel_threads_leave(struct kernel_threads *threads, int32_t *tid, int32_t pid, uint64_t number,
			  bool has_executed);

/* It has ended at `tsc`: whoever has the id behind that is another one. */
void kernel_threads_end(struct kernel_threads *threads, int32_t tid, uint64_t tsc);

#endif
