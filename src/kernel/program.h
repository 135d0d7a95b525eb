/*
 * BPF programs, generated. Pure: descriptors and offsets in, instructions out. Private to the room.
 */
#ifndef KYMO_KERNEL_PROGRAM_H
#define KYMO_KERNEL_PROGRAM_H

#include <linux/bpf.h>

#include "kernel/kernel.h"
#include "kernel/processes.h"

#define KERNEL_LICENSE "Dual MIT/GPL" /* helpers that read memory or time want one that goes with the GPL */
#define KERNEL_PROGRAM_MAX 16384      /* instructions */
#define KERNEL_NAME_SIZE 16           /* TASK_COMM_LEN */

/* A sample as it lies in a ring: this, the arguments in slots, then the thread's name where names are wanted. */
struct kernel_sample {
	uint64_t ns;
	uint64_t lost;
	uint32_t id;
	uint32_t faults;
	int32_t tid, pid;
	uint8_t values[];
};

/* An element of the state map, a cache line of its own. */
struct kernel_state {
	uint64_t count; /* losses of a ring */
	uint64_t unused[7];
};

/* Whose ids samples carry. */
struct kernel_ids {
	pid_t not_tgid;          /* one that is never recorded, or 0 */
	uint64_t ns_dev, ns_ino; /* pid namespace that ids are of; 0: the machine's */
};

struct kernel_program {
	int rings;          /* array of ring buffers, by CPU; those that were offline have none */
	int state;          /* array of struct kernel_state, by CPU */
	int gate;           /* array of one number: 0: no samples are made */
	int processes;      /* struct kernel_processes, or -1: all that run into the probe */
	uint32_t first_cpu; /* whose ring serves CPUs without one */
	struct kernel_ids ids;
	bool names;
	const struct kymo_kernel_arg *args;
	size_t n_args;
	const struct kymo_kernel_form *filter; /* or NULL */
};

/* Bytes of an argument in a sample: 8, or of a string two more than its limit, rounded up. */
size_t kernel_slot_size(enum kymo_type type, uint16_t limit);

/* Bytes of a sample in the ring, without those of its arguments. */
size_t kernel_sample_size(bool names);

/*
 * The program that runs at a probe; its link's cookie is as attach.h tells. Returns the number of instructions;
 * -EINVAL, -ENOSPC; -E2BIG: its strings are too long.
 */
int kernel_program_make(const struct kernel_program *program, struct bpf_insn out[KERNEL_PROGRAM_MAX]);

#endif
