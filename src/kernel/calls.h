/*
 * System calls as the kernel's tracepoints see them, through BPF: of every process, or of some; no thread is stopped.
 * Samples carry copies of the memory that a call's text is made of, taken in the kernel.
 *
 * As with kernel.h, nothing has a name in the system, and all is gone with this process's descriptors. Used from one
 * thread.
 *
 * Public header of the room, beside kernel.h.
 */
#ifndef KYMO_KERNEL_CALLS_H
#define KYMO_KERNEL_CALLS_H

#include "kernel/kernel.h"
#include "wire/copy.h"

enum { KYMO_KERNEL_CALLS_MAX = 512 }; /* numbers are below */

struct kymo_kernel_calls;

struct kymo_kernel_calls_options {
	pid_t pid;            /* one process with all its threads; 0: every process but this one */
	pid_t thread;         /* with `pid`: this thread alone; 0: all */
	bool follow;          /* with `pid`: its descendants to come, too */
	bool has_times;       /* samples say when: two looks at the clock are some 75 ns of a call */
	bool names;           /* samples tell the name of their thread */
	bool signals;         /* they are seen, too */
	uint64_t buffer_size; /* bytes; rounded up to a power of two */
	bool overwrite;       /* where it is full the oldest are lost, in place of the newest */
	const struct kymo_call_layout *layout;
	void *context; /* handed to the functions */
	/* Whether calls of that number are seen; KYMO_KERNEL_CALLS_MAX stands for all that are not below. */
	bool (*wants)(void *context, unsigned int number);
	/* The same of 32-bit calls, by their own numbers below it. Nothing of their memory is copied. */
	bool (*wants_i386)(void *context, unsigned int number);
	/* What is to be copied as the call is made, or has returned: at most KYMO_COPIES_MAX; how many. */
	size_t (*copies)(void *context, unsigned int number, bool is_leaving, struct kymo_copy *ret);
	/* A call whose memory may be another one's when it returns, as execve: what could not be copied at its entry is
	 * not copied then. */
	bool (*replaces_memory)(void *context, unsigned int number);
};

/* Everything is seen from here on. PERMISSION says which rights are missing, NOT_FOUND what the kernel lacks; GONE: no
 * such process. */
struct kymo_error *kymo_kernel_calls_create(const struct kymo_kernel_calls_options *options,
					    struct kymo_kernel_calls **ret);

/* NULL is allowed. */
void kymo_kernel_calls_destroy(struct kymo_kernel_calls *calls);

enum kymo_kernel_call_event {
	KYMO_KERNEL_CALL_ENTERED,
	KYMO_KERNEL_CALL_LEFT,
	KYMO_KERNEL_CALL_SIGNAL, /* a signal is delivered */
	KYMO_KERNEL_CALL_ENDED,  /* a thread */
};

struct kymo_kernel_call {
	enum kymo_kernel_call_event event;
	uint64_t ns;   /* CLOCK_MONOTONIC; 0 without options.has_times */
	uint64_t lost; /* running total before this one, of all CPUs */
	bool has_gap;  /* with options.overwrite: some before this one are no more */
	uint32_t cpu;
	int32_t tid, pid;                /* as struct kymo_kernel_sample has them */
	const char *name;                /* of the thread; NULL without options.names */
	uint64_t number;                 /* of a call; of one that has returned it may be (uint64_t)-1 */
	uint64_t args[6], stack_pointer; /* of a call that begins */
	bool is_i386;   /* a call of 32 bits, `number` is its own; that of one that has executed a program is of the new
			   one's kind */
	int64_t result; /* of a call; the signal's number; the status of a thread, as waitpid() has it */
	const void *siginfo; /* of a signal: 128 bytes */
	bool is_incomplete;  /* some of a call's memory could not be copied as it was made: what is there at its return
				comes with that */
	struct kymo_copies copies; /* during the callback only */
};

/* Nothing more is seen from here on. What was stays to be drained; the count of losses is final. */
void kymo_kernel_calls_detach(struct kymo_kernel_calls *calls);

/*
 * Hand over what is in the ring, in the order in which it happened: some 65,000 at most, as more may come than can be
 * taken out; `is_empty_ret` tells. An error of `see` ends it and is returned.
 */
struct kymo_error *kymo_kernel_calls_drain(struct kymo_kernel_calls *calls,
					   struct kymo_error *(*see)(const struct kymo_kernel_call *call, void *data),
					   void *data, bool *is_empty_ret);

uint64_t kymo_kernel_calls_lost(const struct kymo_kernel_calls *calls);

/* With options.follow: whether any of the processes is left. */
bool kymo_kernel_calls_has_processes(const struct kymo_kernel_calls *calls);

/* Whether the end of a thread may still be missing when no process is left: the kernel counts threads that end at once
 * before it tells of them. */
bool kymo_kernel_calls_may_be_late(const struct kymo_kernel_calls *calls);

#endif
