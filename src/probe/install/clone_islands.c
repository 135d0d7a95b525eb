#include "probe/install/clone_islands.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/vec.h"
#include "probe/coexist/link.h"
#include "probe/install/frames.h"
#include "probe/memory/sessions.h"
#include "proc/thread.h"

/* Where they are, in order. */
struct islands {
	KYMO_VEC(uint64_t) items;
	struct kymo_process *process;
	bool has_frame;
};

static bool gather(const struct kymo_session *session, struct islands *ret)
{
	for (size_t i = 0; i < session->n_sites; i++) {
		const struct kymo_wire_site *site = &session->sites[i];

		if (site->flags & KYMO_WIRE_CATCH && site->link != site->address &&
		    !kymo_vec_push(&ret->items, site->link))
			return false;
	}
	if (ret->items.n)
		qsort(ret->items.items, ret->items.n, sizeof(uint64_t), kymo_compare_u64);
	return true;
}

/* Where the jump of the island at `pc` leads; 0: there is none (any more). */
static uint64_t leads_to(const struct islands *islands, uint64_t pc)
{
	const uint64_t *items = islands->items.items;
	const size_t at = kymo_partition_point(i, islands->items.n, items[i] < pc);

	return at < islands->items.n && items[at] == pc ? probe_jump_at(islands->process, pc) : 0;
}

static bool note_frame(const struct probes_pc *pc, void *data)
{
	struct islands *islands = data;

	islands->has_frame |= leads_to(islands, pc->address) != 0;
	return islands->has_frame;
}

bool probe_pass_islands(struct kymo_process *process, const struct kymo_session *session, const struct kymo_maps *maps)
{
	struct islands islands = { .process = process };
	bool has_all = gather(session, &islands);
	const struct kymo_thread *threads;
	pid_t tid;
	size_t n;

	if (has_all && islands.items.n) {
		probes_find_saved_pc(process, maps, note_frame, &islands, &tid);
		kymo_error_destroy(probe_find_frames(process, maps, note_frame, &islands));
	}
	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; has_all && !islands.has_frame && i < n; i++) {
		const uint64_t target = leads_to(&islands, threads[i].registers.rip);

		if (target)
			kymo_thread_set_pc(process, i, target);
	}
	kymo_vec_deinit(&islands.items);
	return has_all && !islands.has_frame;
}
