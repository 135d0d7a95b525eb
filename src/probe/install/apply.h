/* Writing the text of planned sites. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_APPLY_H
#define KYMO_PROBE_INSTALL_APPLY_H

#include "base/error.h"

struct kymo_probes;

/* What a try to change the process has come to. */
enum probes_outcome {
	PROBES_DONE,      /* unless there is an error, all is in the text */
	PROBES_DIRTY,     /* with an error, which came while the text was written: some of it may be in */
	PROBES_OCCUPIED,  /* nothing is in: a thread stands where it cannot be moved */
	PROBES_SWITCHING, /* nothing is in: the program was changing a marker itself when it was stopped */
	PROBES_WRITABLE,  /* nothing is in: the program may be about to write code where it is to be changed */
	PROBES_OUTDATED,  /* nothing is in: the process is not what was planned for, and to be planned for anew */
	PROBES_CONTENDED, /* nothing is in: another recording is at work on a site; to be planned for anew */
};

/*
 * With the process stopped and pads and journal in place: write the text of all pending sites. With OUTDATED comes
 * the error to tell when planning anew does not help.
 */
struct kymo_error *probes_apply(struct kymo_probes *probes, enum probes_outcome *outcome_ret);

#endif
