#include "probe/threads/writes.h"

#include <x86intrin.h>

#include "arch/pad.h"
#include "arch/writes.h"
#include "probe/probes.h"
#include "probe/spec/spec_write.h"
#include "proc/memory.h"
#include "proc/process.h"

static bool any_writes(const struct kymo_probes *probes)
{
	return kymo_spec_that_writes(probes->wanted.specs, probes->wanted.n_specs) != NULL;
}

static bool is_live(uint8_t state)
{
	return state == KYMO_PAD_EARLY || state == KYMO_PAD_LIVE || state == KYMO_PAD_RSEQ;
}

/* Whether the process has its live page still, and it says that it records. */
static bool has_live_page(const struct kymo_probes *probes, struct kymo_process *process)
{
	uint64_t page[KYMO_PAD_LIVE_LEASE / 8];

	return probes->has_shared && probes->shared.n_regions &&
	       !kymo_process_read(process, probes->shared.live[0], page, sizeof(page)) && is_live((uint8_t)page[0]) &&
	       (pid_t)page[KYMO_PAD_LIVE_INNER_PID / 8] == kymo_process_inner_pid(process);
}

static void set_lease(const struct kymo_probes *probes, struct kymo_process *process, uint64_t until)
{
	if (probes->has_shared && probes->shared.n_regions)
		kymo_process_write(process, probes->shared.live[0] + KYMO_PAD_LIVE_LEASE, &until, sizeof(until));
}

void probes_begin_writes(const struct kymo_probes *probes, struct kymo_process *process)
{
	const uint64_t most = ((uint64_t)1 << KYMO_PAD_LEASE_BITS) - 1;
	uint64_t ticks = KYMO_WRITES_LEASE_S * probes->wanted.options.frequency;

	if (!any_writes(probes))
		return;
	set_lease(probes, process, __rdtsc() + (ticks < most ? ticks : most));
}

void kymo_probes_renew_writes(const struct kymo_probes *probes, struct kymo_process *process)
{
	if (any_writes(probes) && has_live_page(probes, process))
		probes_begin_writes(probes, process);
}

void kymo_probes_end_writes(const struct kymo_probes *probes, struct kymo_process *process)
{
	if (any_writes(probes) && has_live_page(probes, process))
		set_lease(probes, process, 0);
}
