#include "probe/threads/writes.h"

#include <x86intrin.h>

#include "arch/pad.h"
#include "arch/writes.h"
#include "probe/probes.h"
#include "probe/spec/spec_write.h"
#include "proc/memory.h"

static bool any_writes(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (kymo_spec_writes(&probes->wanted.specs[i]))
			return true;
	return false;
}

static bool is_live(uint8_t state)
{
	return state == KYMO_PAD_EARLY || state == KYMO_PAD_LIVE || state == KYMO_PAD_RSEQ;
}

/* Whether there is a live page with a lease. */
static bool has_lease(const struct kymo_probes *probes, struct kymo_process *process)
{
	uint64_t page[KYMO_PAD_LIVE_LEASE / 8 + 1];

	return probes->has_shared && probes->shared.n_regions &&
	       !kymo_process_read(process, probes->shared.live[0], page, sizeof(page)) && is_live((uint8_t)page[0]) &&
	       page[KYMO_PAD_LIVE_LEASE / 8];
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
	if (any_writes(probes) && has_lease(probes, process))
		probes_begin_writes(probes, process);
}

void kymo_probes_end_writes(const struct kymo_probes *probes, struct kymo_process *process)
{
	if (any_writes(probes) && has_lease(probes, process))
		set_lease(probes, process, 0);
}
