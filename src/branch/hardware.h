/*
 * The processor as the source: threads run freely, and what it has recorded is read when they end, execute another
 * program, or are let go. Private to the room.
 */
#ifndef KYMO_BRANCH_HARDWARE_H
#define KYMO_BRANCH_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct branch_perf;
struct branch_raw;
struct kymo_branches;

/* How a thread is recorded: perf.h, and raw.h. Tests have others. */
struct branch_hardware {
	int (*open)(pid_t tid, size_t tail, struct branch_perf **ret);
	int (*read)(struct branch_perf *perf, uint8_t **bytes, size_t *size, bool *is_overwritten);
	void (*close)(struct branch_perf *perf);
	int (*decode)(const struct branch_raw *raw);
};

/* Engines for a thread, or for each of a process, and from then on for new ones. A negative errno of
 * kymo_engine_attach(). */
int branch_hardware_attach(struct kymo_branches *branches, pid_t tid);
int branch_hardware_attach_process(struct kymo_branches *branches);

/* Read what threads have that have not ended, and let go of all. */
void branch_hardware_detach(struct kymo_branches *branches);

#endif
