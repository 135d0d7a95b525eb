#include "probe/threads/writes.h"

#include <x86intrin.h>

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

static void set_lease(const struct kymo_probes *probes, struct kymo_process *process, uint64_t until)
{
	if (probes->has_shared && probes->shared.n_regions)
		kymo_process_write(process, probes->shared.live[0] + KYMO_PAD_LIVE_LEASE, &until, sizeof(until));
}

void kymo_probes_renew_writes(const struct kymo_probes *probes, struct kymo_process *process)
{
	const uint64_t most = ((uint64_t)1 << KYMO_PAD_LEASE_BITS) - 1;
	uint64_t ticks = KYMO_WRITES_LEASE_S * probes->wanted.options.frequency;

	if (!any_writes(probes))
		return;
	set_lease(probes, process, __rdtsc() + (ticks < most ? ticks : most));
}

void kymo_probes_end_writes(const struct kymo_probes *probes, struct kymo_process *process)
{
	if (any_writes(probes))
		set_lease(probes, process, 0);
}
