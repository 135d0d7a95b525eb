#include "probe/snapshot/snapshot.h"

#include "probe/coexist/modified.h"
#include "probe/probes.h"
#include "probe/site/switches.h"
#include "probe/threads/watch.h"
#include "proc/memory.h"

void probe_snapshot_deinit(struct probe_snapshot *snapshot)
{
	probes_peers_deinit(&snapshot->peers);
	kymo_maps_deinit(&snapshot->maps);
	probe_bytes_deinit(&snapshot->bytes);
}

static bool copy_bytes(const struct kymo_probes *probes, struct probe_bytes *ret)
{
	for (size_t i = 0; i < probes->modified.n; i++)
		if (!probe_bytes_copy(ret, probes->process, probes->modified.items[i].address, 1))
			return false;
	for (size_t i = 0; i < probes->switches.n; i++)
		if (probes->switches.items[i].corrupt &&
		    !probes_copy_switch(&probes->switches.items[i], probes->process, ret))
			return false;
	return true;
}

struct kymo_error *probe_snapshot_take(struct kymo_probes *probes, struct probe_snapshot *ret)
{
	struct probe_snapshot snapshot = { .has_peers = true };
	struct kymo_error *error = probes_peers_read(probes, &snapshot.peers);

	if (!error) {
		probe_status_read(probes->process, &snapshot.status);
		error = kymo_process_maps(probes->process, &snapshot.maps);
	}
	if (!error && !copy_bytes(probes, &snapshot.bytes))
		error = &kymo_error_no_memory;
	if (error) {
		probe_snapshot_deinit(&snapshot);
		return error;
	}
	*ret = snapshot;
	return NULL;
}

struct kymo_error *probe_snapshot_take_mapped(struct kymo_probes *probes, struct probe_snapshot *ret)
{
	struct probe_snapshot snapshot = { .peers = { .n = 0 } };
	struct kymo_error *error = kymo_process_maps(probes->process, &snapshot.maps);

	snapshot.has_peers = kymo_probes_are_watching(probes) && probes_have_let_pass(probes);
	if (!error && snapshot.has_peers)
		error = probes_peers_read(probes, &snapshot.peers);
	if (error) {
		probe_snapshot_deinit(&snapshot);
		return error;
	}
	*ret = snapshot;
	return NULL;
}
