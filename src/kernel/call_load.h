/* The BPF programs of system calls, put into the kernel. Private to the room. */
#ifndef KYMO_KERNEL_CALL_LOAD_H
#define KYMO_KERNEL_CALL_LOAD_H

#include <stdint.h>

#include "base/error.h"
#include "kernel/call_layout.h"

struct bpf_object;

/* What they look into, and what of it is wanted. */
struct call_load {
	int ring_fd;
	int processes_fd; /* struct kernel_processes, or -1: all are seen */
	uint32_t n_cpus;
	bool is_large[2]; /* some entry, some exit has copies that may be large */
	bool signals, follow;
	struct kernel_call_options options;
};

/* The programs, not in the kernel yet, and what calls they see, to be filled in. */
struct kymo_error *call_load_open(struct bpf_object **ret, struct kernel_call_rows **rows_ret);

/* Into the kernel. */
struct kymo_error *call_load(struct bpf_object *object, const struct call_load *load);

/* The descriptor of one that runs at its tracepoint from now on. */
struct kymo_error *call_load_run(const struct bpf_object *object, const char *program, int *ret);

/* How `from` is made; and the most that `n` copies may take, if that is little; else -1. */
struct kernel_call_copy call_load_copy(const struct kymo_copy *from);
int32_t call_load_room(const struct kymo_copy *copies, size_t n);

#endif
