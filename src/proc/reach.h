/* Having engines on a process that another process may trace already. */
#ifndef KYMO_PROC_REACH_H
#define KYMO_PROC_REACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_hub;

/* How to have engines on a process that somebody else may trace already. The functions get `data`. */
struct kymo_reach {
	struct kymo_hub **hub; /* what is opened, or connected to */
	void *data;
	int (*open)(void *data);                    /* begin a hub of our own */
	int (*attach)(void *data, pid_t *busy_ret); /* -EBUSY: `busy_ret` is a thread that somebody else traces */
	void (*close)(void *data);                  /* the hub, also one that could not be had */
	bool (*is_given_up)(void *data);
};

/*
 * Attach by a hub of our own, or by that of somebody who traces the process and lets us in. That one may be on its way
 * out, so both are tried a few times. A negative errno: BUSY where it lets nobody in. What was opened last may be there
 * still.
 */
int kymo_hub_reach(const struct kymo_reach *reach);

/* The sentence for it, as kymo_hub_explain() has it. BUSY, PERMISSION, GONE, FAILED. */
struct kymo_error *kymo_trace_error(pid_t pid, int err);

/* The sentence for the error of kymo_hub_create(), or of the first ptrace() to a child of one's own: where that is not
 * permitted, why nothing can be traced from here. PERMISSION, FAILED. */
struct kymo_error *kymo_begin_error(int err);

#endif
