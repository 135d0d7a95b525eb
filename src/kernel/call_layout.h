/*
 * What the programs of system calls (call.bpf.c) and this process both know: it includes nothing of a C library.
 * Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_LAYOUT_H
#define KYMO_KERNEL_CALL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/copy.h"

#define CALL_RING_RECORD_MAX 65536
#define CALL_RING_IDLE UINT64_MAX
#define CALL_RING_SECTIONS 4

/* How the map's memory begins; after it a line for each CPU, then `size` bytes and CALL_RING_RECORD_MAX more. */
struct call_ring_head {
	uint64_t head;  /* bytes that were taken, ever */
	uint64_t lost;  /* records for which there was no room */
	uint64_t noted; /* threads that are to be copied for again: the programs' own */
	uint64_t unused[5];
	uint64_t tail; /* bytes that were read, ever: the reader's; or overwritten */
	uint64_t firsts[CALL_RING_SECTIONS];
	uint64_t unused_too[3];
};

struct call_ring_line {
	uint64_t begun;
	uint64_t ids, row; /* of a call, from one program to the one that goes on with it */
	uint64_t unused[5];
};

/* Offset of the lines, and of the bytes, in the map's memory. */
#define CALL_RING_LINES sizeof(struct call_ring_head)
#define CALL_RING_BYTES(n_lines) (CALL_RING_LINES + (n_lines) * sizeof(struct call_ring_line))

#define KERNEL_CALL_SCRATCH CALL_RING_RECORD_MAX /* bytes in which a CPU makes a sample that may be large */
#define KERNEL_CALL_NUMBERS 513                  /* the last stands for all numbers that are not below */
#define KERNEL_CALL_NAME_SIZE 16                 /* TASK_COMM_LEN */
#define KERNEL_SIGINFO_SIZE 48                   /* struct kernel_siginfo: the beginning of a siginfo_t */
#define KERNEL_CALL_SMALL 512 /* copies that are made in the ring: room for all that there may be is taken first */

#define KERNEL_CALL_SMALL_COPIES 3 /* of a call at most */

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
	char name[KERNEL_CALL_NAME_SIZE];  /* of the thread, where names are wanted */
	uint8_t copies[];
};

enum {
	KERNEL_CALL_PIECE_HEADER = sizeof(struct kymo_copied), /* in front of each piece of a copy */
	KERNEL_CALL_PIECE_MIN = 32, /* bytes that a copy's first piece takes at least, in a sample in the ring */
};

/* A copy, as programs make it. */
struct kernel_call_copy {
	uint8_t what, arg, times, is_pointer; /* as of struct kymo_copy */
	uint16_t offset, size;
	uint16_t max;  /* bytes */
	uint16_t most; /* elements of `size` bytes */
};

#define KERNEL_CALL_COPIES_MAX (2 * KYMO_COPIES_MAX) /* those of an exit, and of the entry once more */

/* What one end of the calls of a number wants. */
struct kernel_call_row {
	uint8_t is_seen;
	uint8_t n; /* copies */
	uint8_t unused[2];
	int32_t room; /* the most that the copies may take, if that is little; else -1 */
	struct kernel_call_copy copies[KERNEL_CALL_COPIES_MAX];
};

/* Tables of rows: of entries, of exits; both of 32-bit calls, of which nothing is copied; and of the exits of calls
 * whose copies failed at the entry. */
enum { KERNEL_CALL_I386 = KERNEL_CALL_LEAVE + 1, KERNEL_CALL_AGAIN = 2 * KERNEL_CALL_I386, KERNEL_CALL_TABLES };

struct kernel_call_rows {
	struct kernel_call_row rows[KERNEL_CALL_TABLES][KERNEL_CALL_NUMBERS];
};

/* What does not change once the programs are loaded: the verifier leaves out what is not asked for. */
struct kernel_call_options {
	uint64_t ns_dev, ns_ino; /* pid namespace that ids are of; 0: the machine's */
	int32_t not_tgid;        /* one that is never seen, or 0 */
	int32_t thread;          /* the only one that is seen, or 0 */
	uint32_t n_lines, size, capacity, record_max, section_shift; /* of the ring */
	uint32_t i386_shift;                                         /* of layout.is_32_bits */
	bool overwrite, has_processes, has_times, has_names;
	struct kymo_call_layout layout;
};

#endif
