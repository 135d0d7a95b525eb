/*
 * Names of threads, from the trace's environment (`thread_4242 = "python3"`).
 */
#ifndef KYMO_REPORT_NAMES_H
#define KYMO_REPORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctf/ctf.h"

struct thread_name {
	int32_t tid;
	const char *raw;		/* the trace's */
	char *safe;			/* for a terminal */
};

struct names {
	struct thread_name *items;	/* sorted by tid */
	size_t n;
};

/* The trace must outlive the names. */
struct kymo_error *kymo_names_init(struct names *names, const struct kymo_ctf_trace *trace, bool unicode);
void kymo_names_deinit(struct names *names);

/* The thread's name, or NULL. */
const struct thread_name *kymo_names_find(const struct names *names, int32_t tid);

#endif
