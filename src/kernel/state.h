/* What is set up for a recording. Private to the room. */
#ifndef KYMO_KERNEL_STATE_H
#define KYMO_KERNEL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "kernel/kernel.h"
#include "kernel/program.h"
#include "wire/event.h"
#include "wire/types.h"

struct ring_buffer;

/* How samples of an event become records. */
struct kernel_shape {
	enum kymo_type types[KYMO_EVENT_MAX_ARGS];
	uint16_t limits[KYMO_EVENT_MAX_ARGS];
	uint8_t n_args;
	bool has_faults;
};

struct kernel_ring {
	struct kymo_kernel *kernel;
	size_t index;
	uint32_t cpu;
	int fd;
};

struct kymo_kernel {
	struct kymo_kernel_options options;
	pid_t attach_pid; /* what links and perf events are bound to: 0 for all processes */
	struct kernel_ids ids;
	int rings_fd, state_fd, processes_fd, gate_fd;
	uint64_t *gate;                     /* mapped */
	struct kernel_processes *processes; /* mapped, as the next one */
	struct kernel_state *state;         /* n_state elements */
	size_t n_state, state_size;
	struct kernel_ring *rings;
	size_t n_rings;
	struct ring_buffer *reader;
	bool has_multi;
	KYMO_VEC(int) fds; /* that keep probes in: closed in the reverse order */
	KYMO_VEC(struct kernel_shape) shapes;
	KYMO_VEC(uint32_t) shape_of; /* by event id: index + 1 */
	/* of the drain that goes on */
	struct kymo_error *(*see)(const struct kymo_kernel_sample *sample, void *data);
	void *data;
	struct kymo_error *error;
};

/* The size that a ring of `wanted` bytes has: a power of two, at least a page. */
uint32_t kernel_ring_size(uint64_t wanted);

/* Which ids samples carry. */
struct kymo_error *kernel_choose_namespace(struct kymo_kernel *kernel);

/* The table of processes that are recorded, with options.pid in it. */
struct kymo_error *kernel_create_processes(struct kymo_kernel *kernel);

/* All that it has; not the struct itself. */
void kernel_deinit(struct kymo_kernel *kernel);

#endif
