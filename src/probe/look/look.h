#ifndef KYMO_PROBE_LOOK_LOOK_H
#define KYMO_PROBE_LOOK_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;
struct kymo_process;

/*
 * The check of the text of one process with these probes, some times a second: whether their jumps are still there.
 * Another tool's uprobe writes its own bytes over a jump, and the file's when it leaves; a program may drop pages of
 * its own text. kymo removes its own bytes under such a breakpoint, and puts a probe in again when the file's bytes are
 * there (docs/internals/coexisting.md). A look costs a read for each page with probes, and no more if nothing has
 * changed.
 */
struct kymo_look;

enum kymo_gap_cause {
	KYMO_GAP_BREAKPOINT, /* a third party's breakpoint */
	KYMO_GAP_DROPPED, /* the file's bytes were there: a page was dropped, or a breakpoint has come and gone between
			     two looks */
	KYMO_GAP_CHANGED, /* a third party has changed the code in another way */
};

/* A time in which some probes were not in the text, so that their hits are not known. */
struct kymo_gap {
	enum kymo_gap_cause cause;
	size_t n;       /* probes */
	uint64_t begin; /* stamp of the last look that found them in; 0: there was none before */
	uint64_t end;   /* stamp of the look that found them in again; 0: they are out */
	bool is_open;   /* they were out when the look ended */
	char name[56];  /* of the first */
};

/* `process` is the process that the probes were put into, or an adopted child. Both must outlive the look. */
struct kymo_error *kymo_look_create(struct kymo_probes *probes, struct kymo_process *process, struct kymo_look **ret);
void kymo_look_destroy(struct kymo_look *look);

/* Look, at `tsc`; stops the process if text must be changed. BUSY: that was not possible now; the next look tries
 * again. */
struct kymo_error *kymo_look(struct kymo_look *look, uint64_t tsc, uint64_t *stopped_ns_ret);

/* No more looks: gaps that are open end. */
void kymo_look_end(struct kymo_look *look, uint64_t tsc);

/* All gaps so far. Later looks add gaps, and may set the end of an open gap and lower its number. */
const struct kymo_gap *kymo_look_gaps(const struct kymo_look *look, size_t *n_ret);

#endif
