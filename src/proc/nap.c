#include "proc/nap.h"

#include <time.h>

#include "base/io.h"
#include "proc/members.h"
#include "proc/state.h"

#define SECOND_NS 1000000000u

void kymo_process_wait_until(const struct kymo_process *process, bool (*is_done)(const struct kymo_process *process),
			     uint64_t timeout_ns)
{
	const uint64_t deadline = kymo_now_ns() + timeout_ns;

	for (unsigned int spins = 0; !is_done(process) && kymo_now_ns() < deadline; spins++) {
		if (kymo_tree_pump(process->tree))
			spins = 0;
		else
			kymo_tree_doze(process->tree, spins);
	}
}

static bool never(const struct kymo_process *process)
{
	return false;
}

void kymo_process_nap(const struct kymo_process *process, uint64_t ns)
{
	if (process->tree)
		kymo_process_wait_until(process, never, ns);
	else
		nanosleep(&(struct timespec){ (time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS) }, NULL);
}
