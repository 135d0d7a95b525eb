/*
 * The table of recorded processes, for this process and for BPF programs in C: it includes nothing of a C library.
 * Private to the room.
 */
#ifndef KYMO_KERNEL_PROCESSES_H
#define KYMO_KERNEL_PROCESSES_H

#include <stdint.h>

/*
 * Which processes are recorded, by the machine's ids: the only element of its map. A bit for each possible id has room
 * for all. It is cheaper to test than an entry of a hash, which needs the kernel's functions.
 */
#define KERNEL_PIDS (1 << 22) /* PID_MAX_LIMIT */
struct kernel_processes {
	uint64_t bits[KERNEL_PIDS / 64];  /* set until the id is another process's: threads end after one another */
	uint64_t ended[KERNEL_PIDS / 64]; /* those of which no thread is left, or only such as are about to end */
	uint64_t n;                       /* that have not ended */
	uint64_t may_be_late; /* not 0: the last thread of one was seen to end while others were not released yet */
};

#endif
