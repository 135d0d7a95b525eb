/* Writing the text of planned sites. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_APPLY_H
#define KYMO_PROBE_INSTALL_APPLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_maps;
struct kymo_probes;
struct kymo_process;

enum probes_again {
	PROBES_DONE,
	PROBES_AGAIN_LATER, /* a thread stands where it cannot be moved */
	PROBES_AGAIN_ANEW,  /* the process is not any more what was planned for: another recording came or left */
};

/*
 * With the process stopped and pads and journal in place: write the text of all pending sites. When it is to be tried
 * again nothing was changed; with ANEW comes the error to tell when that does not help.
 */
struct kymo_error *probes_apply(struct kymo_probes *probes, enum probes_again *again_ret);

/*
 * Words on the stacks of the stopped threads that look like the program counter of a saved signal frame (a code
 * selector two words behind) and for which `is_hot` says yes: the first is returned, with its thread, or 0.
 */
uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps,
			      bool (*is_hot)(uint64_t pc, void *data), void *data, pid_t *tid_ret);

#endif
