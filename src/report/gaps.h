/*
 * Gaps: times when probes were not in the code of a process, as another tool had changed it. The trace has them as keys
 * of its environment, "gap_…".
 */
#ifndef KYMO_REPORT_GAPS_H
#define KYMO_REPORT_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "ctf/ctf.h"

struct trace_gap {
	int32_t pid;
	const char *cause;   /* a sentence's part; static */
	const char *word;    /* "breakpoint", "dropped", "changed"; static */
	uint64_t n;          /* probes */
	uint64_t begin, end; /* stamps; end 0: they were out at the end */
	const char *name;    /* of the first probe; the trace's */
};

/* Whether a key of the trace's environment is a gap that makes sense. */
bool kymo_gap_parse(const struct kymo_ctf_env *env, struct trace_gap *ret);

#endif
