/* The end of a recording, for others. */
#ifndef KYMO_RECORD_HANDOVER_H
#define KYMO_RECORD_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

struct kymo_record_control;
struct kymo_record_result;
struct recording;

/*
 * Serve tracers that work through `shared` or `shared_hub`, until no client is left, `control->stop` is set, or `ms`
 * have passed. Whether a client is left, and the process of one; 0: it can't be told. If the command ends meanwhile,
 * the result tells it.
 */
bool kymo_record_serve(struct kymo_record_result *result, const struct kymo_record_control *control, int ms,
		       pid_t *who_ret);

/* Remaining clients are told that this one has ended. Both are NULL then, and may be before. */
void kymo_record_leave(struct kymo_record_result *result);

/* ---- private to the room --------------------------------------------------------------------- */

/* The recording is over: let go of all processes; the tree becomes the result's, if others need it. */
void recording_share(struct recording *recording);

#endif
