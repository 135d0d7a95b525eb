#include "record/stale.h"

#include <stdlib.h>

#include "probe/install/remove.h"
#include "probe/probe.h"
#include "proc/left_stub.h"
#include "proc/process.h"

struct kymo_error *recording_clear_stale(struct kymo_process *process)
{
	struct kymo_detach_result result = { .note = NULL };
	bool had_stub;
	struct kymo_error *error = kymo_start_clear(process, &had_stub);

	if (!error)
		error = kymo_remove(process, 0, &result);
	if (!error && result.pads_left)
		error = kymo_error_create(KYMO_ERROR_BUSY,
					  "a thread of process %d still stands in a pad of an earlier recording",
					  kymo_process_pid(process));
	free(result.note);
	return error;
}
