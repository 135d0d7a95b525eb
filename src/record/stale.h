/* What earlier recorders have left in a process. Private to the room. */
#ifndef KYMO_RECORD_STALE_H
#define KYMO_RECORD_STALE_H

#include "base/error.h"

struct kymo_process;

/* Take out what recorders that are gone have left in a process. Living ones have their own. BUSY: a thread is in it
 * still. */
struct kymo_error *recording_clear_stale(struct kymo_process *process);

#endif
