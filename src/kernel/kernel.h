/*
 * What the kernel offers to record with: its own uprobes, through perf events and BPF. The only user of libbpf.
 *
 * For each list of arguments a program of a few dozen BPF instructions is generated and attached at sites of files. It
 * writes samples into a ring buffer a CPU. Nothing has a name in the system: all that is set up are descriptors of this
 * process, and it is gone when they are closed, however this process ends.
 *
 * Used from one thread. All pids are as this process sees them.
 */
#ifndef KYMO_KERNEL_KERNEL_H
#define KYMO_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "kernel/attach.h"
#include "wire/event.h"

struct kymo_kernel;

struct kymo_kernel_options {
	/*
	 * one process, with all its threads, also those to come; 0: every process that maps the files, now or later,
	 * but this one
	 */
	pid_t pid;
	pid_t thread;         /* of `pid`: one that has not ended; 0: the first has not */
	bool follow;          /* with `pid`: its descendants to come, too */
	bool names;           /* samples tell the name of their thread */
	uint64_t buffer_size; /* bytes a CPU; rounded up to a power of two */
	bool is_shut;         /* no samples are made before kymo_kernel_let_in() */
	bool no_multi;        /* one perf event a probe, as on kernels before 6.10; for tests */
};

/*
 * Set up rings and filters; nothing is probed yet. PERMISSION says which rights are missing, NOT_FOUND what the kernel
 * lacks; GONE: no such process.
 */
struct kymo_error *kymo_kernel_create(const struct kymo_kernel_options *options, struct kymo_kernel **ret);

/* How long this kernel takes for each of many sites, in words: "about 1 ms each". */
const char *kymo_kernel_cost_of_sites(void);

/* Take all probes out and free. NULL is allowed. */
void kymo_kernel_destroy(struct kymo_kernel *kernel);

/* ---- probes ---------------------------------------------------------------------------------- */

/* From one moment on, for all probes: samples are made; none are. Putting thousands in, or taking them out, lasts. */
void kymo_kernel_let_in(struct kymo_kernel *kernel);
void kymo_kernel_shut(struct kymo_kernel *kernel);

/* ---- samples --------------------------------------------------------------------------------- */

/* Bytes of a record: each string may be cut, and end with the mark of that. */
#define KYMO_KERNEL_RECORD_MAX \
	(KYMO_EVENT_MAX_SIZE + KYMO_KERNEL_STRINGS_MAX + KYMO_EVENT_MAX_ARGS * sizeof(KYMO_STRING_CUT))

struct kymo_kernel_sample {
	size_t ring;
	uint64_t ns;   /* CLOCK_MONOTONIC; may be a little before the sample in front of it */
	uint64_t lost; /* of the ring, running total before this sample */
	/*
	 * as the recorded process sees them; with several processes as this one does, or as the machine does where this
	 * one can't
	 */
	int32_t tid, pid;
	const char *name;      /* of the thread; NULL without options.names */
	const uint8_t *record; /* as in wire/event.h, with the time 0 */
	size_t size;
};

/* Hand over what is in the rings, ring by ring. An error of `see` ends it and is returned; its sample is gone. */
struct kymo_error *kymo_kernel_drain(struct kymo_kernel *kernel,
				     struct kymo_error *(*see)(const struct kymo_kernel_sample *sample, void *data),
				     void *data);

size_t kymo_kernel_n_rings(const struct kymo_kernel *kernel);
uint32_t kymo_kernel_cpu(const struct kymo_kernel *kernel, size_t ring);

/* Events of the ring lost so far. */
uint64_t kymo_kernel_lost(const struct kymo_kernel *kernel, size_t ring);

/* With options.follow: whether any of the processes is left. */
bool kymo_kernel_has_processes(const struct kymo_kernel *kernel);

#endif
