/* Histories of branches, for a terminal or a program. The room's second front door. */
#ifndef KYMO_REPORT_BRANCHES_H
#define KYMO_REPORT_BRANCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct kymo_branches_view {
	bool json;      /* one object; kymo-branches(1) documents it */
	bool addresses; /* those of the process, beside names */
	bool unicode, color;
	int32_t thread;     /* this one alone; 0: all */
	size_t last;        /* so many branches of each; 0: all */
	const char *before; /* a pattern of events: what led to the last record of such a one, of each thread that has
			       made one; or NULL */
};

/*
 * Write the histories of the trace in `dir`, the oldest branch first, loops folded. Text of the trace is escaped.
 * NOT_FOUND (the trace, its branches, the thread), BAD_DATA, FAILED (`out` takes no more), NO_MEMORY.
 */
struct kymo_error *kymo_report_branches(const char *dir, const struct kymo_branches_view *view, FILE *out);

/* What a signal has ended: the signal, and the last branches of the thread that got it, then those of the others.
 * NOT_FOUND where nothing was ended by one. */
struct kymo_error *kymo_report_crash(const char *dir, const struct kymo_branches_view *view, FILE *out);

/* Where the histories of two traces first differ, thread by thread. `*differ_ret`: they do. */
struct kymo_error *kymo_report_branches_diff(const char *a, const char *b, const struct kymo_branches_view *view,
					     FILE *out, bool *differ_ret);

#endif
