/* What /proc tells of a process beside its mappings. */
#ifndef KYMO_PROBE_SNAPSHOT_STATUS_H
#define KYMO_PROBE_SNAPSHOT_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kymo_process;

struct probe_status {
	uint64_t handled_signals; /* that it has handlers for, 1 << each (SigCgt); 0 for one that is gone */
	uint64_t heap_start;      /* also as long as there is no heap; 0: not known */
	bool locks_memory;        /* pages are allocated as soon as they are mapped; or that is not known */
	bool has_address_limit;   /* mappings count there by their length, whether pages are allocated or not */
	size_t mappings_max;      /* that any process may have */
};

void probe_status_read(struct kymo_process *process, struct probe_status *ret);

/* The handled signals alone. */
uint64_t kymo_handled_signals(pid_t pid);

#endif
