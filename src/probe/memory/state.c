/* What is known of probes and their rings, while they are in. */
#include "probe/memory/state.h"

#include "probe/probes.h"
#include "proc/memory.h"

uint64_t kymo_probes_inode(const struct kymo_probes *probes)
{
	return probes->has_shared ? probes->shared.inode : 0;
}

size_t kymo_probes_n_rings(const struct kymo_probes *probes)
{
	return probes->has_shared ? probes->shared.n_rings : 0;
}

struct kymo_shared_ring kymo_probes_ring(const struct kymo_probes *probes, size_t i)
{
	return kymo_data_ring(&probes->shared, &probes->wanted.options, &probes->shared.data, i);
}

void kymo_probes_publish(struct kymo_probes *probes, uint64_t recorded_bytes, uint64_t lost)
{
	if (!probes->has_shared)
		return;
	probes->shared.header->recorded_bytes = recorded_bytes;
	probes->shared.header->lost_events = lost;
}

bool kymo_probes_are_muted(const struct kymo_probes *probes)
{
	return probes->has_shared && __atomic_load_n(&probes->shared.data.head->is_muted, __ATOMIC_RELAXED);
}

uint64_t kymo_probes_lost_in_vforks(const struct kymo_probes *probes)
{
	return probes->has_shared ? __atomic_load_n(&probes->shared.data.head->lost_in_vforks, __ATOMIC_RELAXED) : 0;
}

bool kymo_probes_are_mapped(struct kymo_probes *probes)
{
	uint64_t magic;

	return probes->has_shared &&
	       !kymo_process_read(probes->process, probes->shared.address, &magic, sizeof(magic)) &&
	       magic == KYMO_WIRE_MAGIC;
}
