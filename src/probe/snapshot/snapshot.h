/*
 * What planning has to know of a process: copies, taken once. Plans are made only of a snapshot, of files and of what
 * this recording has done so far (plan/ and resolve/ touch no process: tools/check-layers). How the process has changed
 * meanwhile is seen when the plans are applied, with all threads stopped: then a new snapshot is taken, and all is
 * planned anew (install/install.c).
 */
#ifndef KYMO_PROBE_SNAPSHOT_SNAPSHOT_H
#define KYMO_PROBE_SNAPSHOT_SNAPSHOT_H

#include "base/error.h"
#include "probe/coexist/bytes.h"
#include "probe/coexist/peers.h"
#include "probe/snapshot/status.h"
#include "procfs/maps.h"

struct kymo_probes;

struct probe_snapshot {
	bool has_peers;
	struct probe_peers peers; /* the journals of other recordings, and what the text is to those */
	struct probe_status status;
	struct kymo_maps maps;
	struct probe_bytes bytes; /* of what third parties have modified, and of markers that were corrupt */
};

/* All of it. The process may run. */
struct kymo_error *probe_snapshot_take(struct kymo_probes *probes, struct probe_snapshot *ret);

/* What resolving asks for: mappings; and the journals, where calls of libraries may have been missed. */
struct kymo_error *probe_snapshot_take_mapped(struct kymo_probes *probes, struct probe_snapshot *ret);

void probe_snapshot_deinit(struct probe_snapshot *snapshot);

#endif
