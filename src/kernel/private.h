/* What the files of this room share. */
#ifndef KYMO_KERNEL_PRIVATE_H
#define KYMO_KERNEL_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/vec.h"
#include "kernel/program.h"

#define KERNEL_LICENSE "Dual MIT/GPL" /* helpers that read memory or time want one that goes with the GPL */

/* How samples of an event become records. */
struct kernel_shape {
	enum kymo_type types[KYMO_EVENT_MAX_ARGS];
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

/* kernel.c */

uint32_t kernel_ring_size(uint64_t wanted);
struct kymo_error *kernel_choose_namespace(struct kymo_kernel *kernel);
struct kymo_error *kernel_create_state(struct kymo_kernel *kernel, uint32_t n_possible);
struct kymo_error *kernel_create_processes(struct kymo_kernel *kernel);
int kernel_silence(enum libbpf_print_level level, const char *format, va_list args);

/* All that it has; not the struct itself. */
void kernel_deinit(struct kymo_kernel *kernel);

/* attach.c */

/* Whether one link can stand for many places, and tell a process with all its threads from others. */
bool kernel_has_multi(void);

/* follow.c */

/* Keep the table of processes right from now on. */
struct kymo_error *kernel_follow(struct kymo_kernel *kernel);

struct btf;

/* Offset in bytes of a plain member of a structure of the kernel's; -ENOENT. */
int kernel_offset_of(const struct btf *btf, const char *structure, const char *member, uint32_t *ret);

/* "…: the kernel lets …", or what else a refusal of bpf() or perf_event_open() means to the user. */
struct kymo_error *kernel_refused(int err, const char *what);

#endif
