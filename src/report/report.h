/*
 * What a trace says, for a terminal, line by line, or for a program. Reads the directory alone, never a process.
 */
#ifndef KYMO_REPORT_REPORT_H
#define KYMO_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

enum kymo_report_mode {
	KYMO_REPORT_SUMMARY,	/* counts, rates, distributions, losses */
	KYMO_REPORT_EVENTS,	/* a line a record, losses in their place */
	KYMO_REPORT_JSON,	/* the summary's numbers as one JSON object; kymo-report(1) documents it */
};

struct kymo_report_options {
	enum kymo_report_mode mode;
	unsigned int width;	/* columns of the summary; 0: 80 */
	bool colour;		/* ANSI colours */
	bool unicode;		/* the output takes UTF-8 */
	bool all;		/* summary: every probe, thread and distribution, not the first few */
	bool wall;		/* events: local time of day, not seconds since the first event */
};

/*
 * Report the trace in `dir` on `out`, which is flushed. Text from the trace is escaped (\x1b), so that it can't
 * command a terminal.
 * Memory is bounded by the numbers of probes and threads, whatever the length of the trace.
 *
 * Damage of the trace is no error: what can be read is reported, and a sentence says what was left out. Errors:
 * NOT_FOUND, BAD_DATA (nothing can be read), FAILED (`out` takes no more), NO_MEMORY.
 */
struct kymo_error *kymo_report(const char *dir, const struct kymo_report_options *options, FILE *out);

#endif
