/* Program counters that the kernel has saved for handlers of signals, in the memory of a stopped process. Private to
 * the room. */
#ifndef KYMO_PROBE_INSTALL_FRAMES_H
#define KYMO_PROBE_INSTALL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_maps;
struct kymo_process;

/* Where a thread is, or where it returns to from a signal handler. */
struct probes_pc {
	uint64_t address;
	const uint64_t *registers; /* the general ones, and perhaps others; NULL: they are not known */
	size_t n_registers;
};

typedef bool probes_is_hot(const struct probes_pc *pc, void *data);

/*
 * Words on the stopped threads' stacks that look like the program counter of a saved signal frame (a code selector
 * follows two words later). Those count for which `is_hot` says yes: the first is returned, with its thread, or 0.
 */
uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps, probes_is_hot *is_hot,
			      void *data, pid_t *tid_ret);

/* Where in mapping `i` memory begins that is in use: what lies below the stack pointer on the stack of the initial
 * thread, or of one of glibc's, is not. */
uint64_t probe_alive_from(struct kymo_process *process, const struct kymo_maps *maps, size_t i);

/*
 * Tell `is_hot` of each program counter that may be one of a frame: a handler may have switched contexts, so it is
 * looked for in all memory that the process can write. None is told of in a process that handles no signals. UNSAFE:
 * that is too large, or can't be read.
 */
struct kymo_error *probe_find_frames(struct kymo_process *process, const struct kymo_maps *maps, probes_is_hot *is_hot,
				     void *data);

#endif
