/*
 * Functions whose calls can be paired: those that have an event at the entry and one at the exits. A system call is
 * one, too: its entry has an event of its own, and all functions share the event of the return. So is a pair of
 * markers, "x__start" and "x__done".
 */
#ifndef KYMO_REPORT_FUNCTIONS_H
#define KYMO_REPORT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ctf/ctf.h"
#include "report/quantiles.h"
#include "report/stats.h"

#define NO_FUNCTION UINT32_MAX

/* How long calls took. */
struct durations {
	struct stats stats;         /* ns */
	struct quantiles quantiles; /* of the same */
	uint64_t self_ns;           /* of the same: without calls within them */
	bool has_children;          /* there were such calls */
};

/* Each call is counted in one way. */
struct function {
	const struct kymo_ctf_event *entry, *leave;
	struct durations *durations; /* of those that have one; NULL: no call has */
	uint64_t over_losses;        /* records were lost between begin and end */
	uint64_t left;               /* without a return: the caller went on, or the thread ended */
	uint64_t unwound;            /* the same where stack pointers show it: by an exception, longjmp or the like */
	uint64_t without_entry;      /* returns */
	uint64_t open;               /* at the end of the recording */
	uint64_t too_deep;           /* too many calls were nested in them */
	uint64_t errors;             /* of system calls: they failed. Of those that have returned, over a loss or not */
	uint32_t n_unowned;          /* returns in turn for which no thread has a call */
	bool is_syscall;
	bool is_partial; /* not all entries, or not all returns, have records: a return may be that of another call */
	bool is_hidden;  /* by a filter: not counted */
};

/* What an event is to the calls. */
struct role {
	uint32_t function; /* index in `items`, or NO_FUNCTION */
	bool is_entry;
	bool is_sysret;    /* ends the innermost system call, whichever; */
	bool knows_number; /* or tells which: its second value */
	bool is_span;      /* a marker that begins or ends something (report/spans.h) */
	bool is_second;    /* of a function in `items` where another event has the role */
	bool is_partial;   /* of a function that is */
};

struct functions {
	struct function *items;
	size_t n;
	struct role *roles; /* as trace->events */
	size_t n_partial;   /* functions of which neither all entries nor all returns are recorded: they are in no pair,
			       as what ended a call may have been left out, and what began the next one, too */
};

/*
 * Functions are named by path, build id and offset. Where several events stand for the entry (two probes with different
 * arguments) or the exits of one, the first in the trace has the role: each of them is recorded at each call. The trace
 * must outlive the functions.
 */
struct kymo_error *kymo_functions_init(struct functions *functions, const struct kymo_ctf_trace *trace);
void kymo_functions_deinit(struct functions *functions);

/* The function that has `event` for its entry, or NULL. */
struct function *kymo_functions_of_entry(const struct functions *functions, const struct kymo_ctf_trace *trace,
					 const struct kymo_ctf_event *event);

/* The functions that have any call, paired or not, longest total first. A fresh array; NULL when memory is out. */
struct function **kymo_functions_sorted(const struct functions *functions, size_t *n_ret);

/* Count a call that took `ns`, `children_ns` of it in calls within. False when memory is out. */
bool kymo_function_add(struct function *function, uint64_t ns, uint64_t children_ns);

/* A quantile, never outside of what the durations are. */
uint64_t kymo_durations_quantile(const struct durations *durations, unsigned int percent);

#endif
