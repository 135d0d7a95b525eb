/* Having engines on a process that another process may trace already. */
#ifndef KYMO_PROC_REACH_H
#define KYMO_PROC_REACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_hub;

/* How to have engines on a process that another process may trace already. The functions get `data`. */
struct kymo_reach {
	struct kymo_hub **hub; /* what is opened, or connected to */
	void *data;
	int (*open)(void *data);                    /* create a hub of this process */
	int (*attach)(void *data, pid_t *busy_ret); /* -EBUSY: `busy_ret` is a thread that another process traces */
	void (*close)(void *data);                  /* the hub, also one that could not be opened */
	bool (*is_given_up)(void *data);
};

/*
 * Attach by a hub of this process, or by the hub that traces the process already. That hub may be about to end, so both
 * are tried a few times. A negative errno: BUSY if the tracer serves no other process. The last hub that was opened may
 * be left open.
 */
int kymo_hub_reach(const struct kymo_reach *reach);

/* The sentence for it, as kymo_hub_explain() has it. BUSY, PERMISSION, GONE, FAILED. */
struct kymo_error *kymo_trace_error(pid_t pid, int err);

/* The sentence for an error of kymo_hub_create(), or of the first ptrace() of this process's own child. If that is not
 * permitted, it says why nothing can be traced from here. PERMISSION, FAILED. */
struct kymo_error *kymo_begin_error(int err);

#endif
