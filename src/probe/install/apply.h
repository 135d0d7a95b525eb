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

/* Where a thread is, or where it returns to from a signal handler. */
struct probes_pc {
	uint64_t address;
	const uint64_t *registers; /* the general ones, and perhaps others; NULL: they are not known */
	size_t n_registers;
};

typedef bool probes_is_hot(const struct probes_pc *pc, void *data);

/*
 * Words on the stopped threads' stacks that look like the program counter of a saved signal frame (a code selector
 * follows two words later). Those count for which `is_hot` says yes: the first is returned, with its thread, or 0.
 */
uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps, probes_is_hot *is_hot,
			      void *data, pid_t *tid_ret);

#endif
