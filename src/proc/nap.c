#include "proc/nap.h"

#include <time.h>

#include "base/io.h"
#include "proc/members.h"
#include "proc/state.h"

#define SECOND_NS 1000000000u
#define LOOK_NS 1000000u

static void sleep_for(uint64_t ns)
{
	nanosleep(&(struct timespec){ (time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS) }, NULL);
}

void kymo_process_nap(struct kymo_process *process, uint64_t ns)
{
	const uint64_t deadline = kymo_now_ns() + ns;

	if (!process->tree) {
		sleep_for(ns);
		return;
	}
	for (uint64_t now = kymo_now_ns(); now < deadline; now = kymo_now_ns())
		if (!kymo_tree_pump(process->tree))
			sleep_for(deadline - now < LOOK_NS ? deadline - now : LOOK_NS);
}
