/*
 * BPF programs for system calls, generated. Pure, as program.h. Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_PROGRAM_H
#define KYMO_KERNEL_CALL_PROGRAM_H

#include "kernel/call_ring.h"
#include "kernel/program.h"
#include "wire/copy.h"

#define KERNEL_CALL_PROGRAM_MAX 8192             /* instructions */
#define KERNEL_CALL_SCRATCH CALL_RING_RECORD_MAX /* bytes in which a CPU makes a sample that may be large */
#define KERNEL_CALL_NUMBERS 513                  /* the last stands for all numbers that are not below */
#define KERNEL_CALL_PLAIN 2048     /* whether a call is shown without any copies: a bit for each at its entry */
#define KERNEL_CALL_PLAIN_EXIT 512 /* added: the one for its exit */
#define KERNEL_CALL_PLAIN_I386 \
	1024 /* added: those of 32-bit calls, by their own numbers; nothing of them is copied \
	      */

enum kernel_call_what {
	KERNEL_CALL_ENTER,
	KERNEL_CALL_LEAVE,
	KERNEL_CALL_SIGNAL, /* `value` is its number */
	KERNEL_CALL_END,    /* `value` is the status, as of waitpid() */
};

/* The words of a call's sample: its arguments, and */
enum { KERNEL_CALL_STACK_POINTER = 6, KERNEL_CALL_WORDS };

/* A sample as it lies in the ring: as much of this as it has, then copies (wire/copy.h). */
struct kernel_call {
	uint32_t stride;        /* from here to the next one */
	uint32_t size;          /* of what means something */
	uint16_t what, is_i386; /* `is_i386`: not 0 for a call of 32 bits */
	uint32_t cpu;
	uint64_t lost, ns;
	int32_t tid, pid;
	uint64_t value;                    /* of a call: its number, or its result */
	uint64_t number;                   /* of a call that has returned */
	uint32_t is_incomplete;            /* a copy failed */
	uint32_t position;                 /* the program's own */
	uint64_t words[KERNEL_CALL_WORDS]; /* of a call that begins, or has copies; of a signal the siginfo */
	char name[KERNEL_NAME_SIZE];       /* of the thread, where names are wanted */
	uint8_t copies[];
};

#define KERNEL_SIGINFO_SIZE 48 /* struct kernel_siginfo: the beginning of a siginfo_t */

/* Where a task_struct has what is asked of the thread at hand; `mode`: thread_info.status, whether its call is one of
 * 32 bits. */
struct kernel_call_task {
	uint32_t pid, tgid, mode;
};

struct kernel_call_program {
	struct call_ring_shape ring;
	int scratch;   /* array by CPU: KERNEL_CALL_SCRATCH bytes */
	int plain;     /* KERNEL_CALL_PLAIN bits, the only element of its map */
	int again;     /* hash of threads in whose call copies failed as it began; the ring counts them */
	int processes; /* struct kernel_processes, or -1: all are seen */
	pid_t thread;  /* the only one that is seen, or 0 */
	bool has_times;
	struct kernel_ids ids;
	bool names;
	const struct kymo_call_layout *layout;
	struct kernel_call_task task;
};

/*
 * What runs at sys_enter and sys_exit: makes samples of plain calls itself, and picks a program of the array `calls` by
 * number for others. At the exit those for which copies have failed at the entry are taken from the second
 * KERNEL_CALL_NUMBERS of the array first. Numbers of instructions; -ENOSPC.
 */
int kernel_call_pick(const struct kernel_call_program *program, int calls, bool is_leaving, struct bpf_insn *out);

/* What runs for a call: KERNEL_CALL_ENTER or _LEAVE. */
int kernel_call_make(const struct kernel_call_program *program, enum kernel_call_what what,
		     const struct kymo_copy *copies, size_t n, struct bpf_insn *out);

/* What runs at signal_deliver; and at sched_process_exit, with the offset of the status in task_struct. */
int kernel_call_signal_make(const struct kernel_call_program *program, struct bpf_insn *out);
int kernel_call_end_make(const struct kernel_call_program *program, uint32_t status_at, struct bpf_insn *out);

#endif
