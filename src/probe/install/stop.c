#include "probe/install/stop.h"

#include <stdint.h>

#include "base/io.h"
#include "proc/nap.h"
#include "proc/stop.h"

#define STOP_PATIENCE_NS 4000000000u
#define STOP_PAUSE_NS 10000000

struct kymo_error *probes_stop_patiently(struct kymo_process *process)
{
	uint64_t deadline = kymo_now_ns() + STOP_PATIENCE_NS;

	for (;;) {
		struct kymo_error *error = kymo_process_stop(process);

		/* The tracer may be gone when the kernel's refusal is explained: then it looks like a missing
		 * permission. */
		if (!error || (error->code != KYMO_ERROR_BUSY && error->code != KYMO_ERROR_PERMISSION) ||
		    kymo_now_ns() > deadline)
			return error;
		kymo_error_destroy(error);
		kymo_process_nap(process, STOP_PAUSE_NS);
	}
}
