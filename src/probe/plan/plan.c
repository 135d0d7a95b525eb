/*
 * Plans for sites, addresses for their pads, and the pads themselves: from addresses to everything that is written
 * later.
 *
 * Sites are planned from high addresses to low ones, because a pun relies on bytes after it: when it is planned those
 * are known, changed or not, and stay. Each pad is emitted at once, so that the next plan knows the bytes of this one's
 * jump.
 */
#include "probe/plan/plan.h"

#include <string.h>

#include "base/cleanup.h"
#include "probe/code/modules.h"
#include "probe/coexist/modified.h"
#include "probe/coexist/peers.h"
#include "probe/coexist/text.h"
#include "probe/memory/layout.h"
#include "probe/memory/sessions.h"
#include "probe/memory/shared.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/plan/clone_sites.h"
#include "probe/plan/faults.h"
#include "probe/plan/planning.h"
#include "probe/plan/region.h"
#include "probe/plan/pool.h"
#include "probe/plan/allocate.h"
#include "probe/plan/corrupt.h"
#include "probe/probes.h"
#include "probe/resolve/markers.h"
#include "probe/resolve/resolve.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "probe/snapshot/snapshot.h"
#include "probe/threads/threads.h"
#include "probe/threads/watch.h"
#include "procfs/maps.h"

#define SPREAD \
	((uint64_t)512 << 20) /* sites of one region lie within this; the rest of ±2 GiB is for finding a hole \
			       */
#define GAP 16 /* pages between trampolines that are mapped with them, in a process that locks its memory too */
#define GAP_MAX 65536
#define MAPPINGS_FEW 8    /* each is a system call of the target's: as many are mapped with gaps of up to … */
#define FEW_GAP_MAX 4096  /* … so many pages, which take no memory */
#define MAPPINGS_MAX 4096 /* more are mapped with larger gaps */

/* ---- stretches of trampolines ---------------------------------------------------------------- */

/* Half of the mappings that the process may still have, at the most. */
static size_t mappings_allowed(const struct planning *planning)
{
	const size_t all = planning->snapshot->status.mappings_max,
		     most = all > planning->maps.n ? (all - planning->maps.n) / 2 : 0;

	return most < MAPPINGS_MAX ? most : MAPPINGS_MAX;
}

static struct kymo_error *close_stretches(struct planning *planning)
{
	kymo_cleanup_free struct pool_hole *stretches = NULL;
	const struct probe_status *status = &planning->snapshot->status;
	uint64_t at = 0, gap = GAP, few_gap = 0;
	size_t n, most = 0;

	if (probe_pool_stretches(&planning->pool, gap, NULL) > 1) /* else they are as few as can be */
		most = mappings_allowed(planning);
	if (most && !status->locks_memory && !status->has_address_limit)
		few_gap = FEW_GAP_MAX;
	while ((n = probe_pool_stretches(&planning->pool, gap, NULL)) > 1 &&
	       n > (gap < few_gap && MAPPINGS_FEW < most ? MAPPINGS_FEW : most) && gap < GAP_MAX)
		gap *= 4;
	stretches = calloc(n ? n : 1, sizeof(*stretches));
	if (!stretches)
		return &kymo_error_no_memory;
	probe_pool_stretches(&planning->pool, gap, stretches);
	if (planning->layout->stretches.n) {
		const struct probe_stretch *last =
			&planning->layout->stretches.items[planning->layout->stretches.n - 1];

		at = last->at + last->size;
	}
	for (size_t i = 0; i < n; i++) {
		struct probe_stretch stretch = { stretches[i].low, stretches[i].high - stretches[i].low, at };

		at += stretch.size;
		if (!kymo_vec_push(&planning->layout->stretches, stretch) ||
		    !probes_occupy(&planning->maps, stretch.address, stretch.size))
			return &kymo_error_no_memory;
	}
	return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Sites whose addresses lie in [low, high), from above. */
static struct kymo_error *plan_between(struct planning *planning, uint64_t low, uint64_t high)
{
	struct kymo_probes *probes = planning->probes;
	struct kymo_error *error = NULL;
	KYMO_VEC(uint64_t) addresses = { 0 };

	for (size_t i = probes->sites.n; i-- > 0 && !error;) {
		struct probe_site *site = &probes->sites.items[i];

		if (site->address < low || site->address >= high || site->is_installed || site->is_retired ||
		    (!site->is_guard && !probes_is_wanted(site)))
			continue;
		if (!kymo_vec_push(&addresses, site->address))
			error = &kymo_error_no_memory;
	}
	for (size_t i = 0; i < addresses.n && !error; i++) {
		struct probe_site *site = probes_site_at(probes, addresses.items[i]);

		if (site->is_planned)
			continue;
		planning->bias = probes->modules.items[site->module].bias;
		error = site->is_guard ? probes_allocate(planning, site)
				       : probes_plan_site(planning, addresses.items[i]);
	}
	kymo_vec_deinit(&addresses);
	return error;
}

static struct kymo_error *plan_cluster(struct planning *planning, size_t first, size_t end)
{
	struct kymo_probes *probes = planning->probes;
	uint64_t low = probes->sites.items[first].address, high = probes->sites.items[end - 1].address + 1;
	struct kymo_error *error = probes_open_region(planning, first, end);

	planning->n_traps = 0;

	if (!error)
		error = plan_between(planning, low, high);
	if (error)
		return error;
	probes_close_region(planning);
	return close_stretches(planning);
}

static bool is_to_plan(const struct probe_site *site)
{
	return !site->is_installed && !site->is_retired && !site->is_revived &&
	       (site->is_guard || probes_is_wanted(site));
}

static struct kymo_error *plan_all(struct planning *planning)
{
	struct kymo_probes *probes = planning->probes;
	struct kymo_error *error = NULL;
	uint64_t from = 0;

	/* From cluster to cluster; the array grows meanwhile, by evicted instructions within a cluster's modules. */
	while (!error) {
		size_t first = 0, end;
		uint64_t limit;

		while (first < probes->sites.n &&
		       (probes->sites.items[first].address < from || !is_to_plan(&probes->sites.items[first])))
			first++;
		if (first == probes->sites.n)
			break;
		limit = probes->modules.items[probes->sites.items[first].module].low + SPREAD;
		for (end = first + 1;
		     end < probes->sites.n && probes->modules.items[probes->sites.items[end].module].high < limit;
		     end++)
			;
		while (!is_to_plan(&probes->sites.items[end - 1]))
			end--;
		from = probes->sites.items[end - 1].address + 1;
		error = plan_cluster(planning, first, end);
	}
	return error;
}

static struct kymo_error *mark_wanted(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		if (is_to_plan(&probes->sites.items[i]) && probes_is_wanted(&probes->sites.items[i]) &&
		    !probe_text_mark(&probes->text, TEXT_WANTED, probes->sites.items[i].address, 1, true))
			return &kymo_error_no_memory;
	return NULL;
}

/* Guards of our own, unless another recording's are in the text: then ours are prepared only. */
static struct kymo_error *take_duty(struct kymo_probes *probes, const struct probe_snapshot *snapshot)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		if (probes->sites.items[i].is_guard && !probes->sites.items[i].is_installed)
			probes->sites.items[i].is_standby = snapshot->peers.duty != 0;
	probes->threads.vforks = snapshot->peers.duty;
	return probes_add_limits_watch(probes);
}

/* Where another recording has something else in the place of a guard there can be none, and no sequences. */
static struct kymo_error *allocate_duty(struct kymo_probes *probes)
{
	bool blocked = false;

	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];

		blocked |= site->is_guard && !site->is_installed && !site->is_standby &&
			   probe_text_is(&probes->text, TEXT_LOCKED, site->address, site->plan.lock_size);
	}
	if (blocked) {
		struct kymo_error *error;

		probes_drop_guards(probes);
		error = probes_add_limits_watch(probes);
		return error ? error : mark_wanted(probes);
	}
	for (size_t i = 0; i < probes->sites.n; i++)
		if (probes->sites.items[i].is_guard && !probes->sites.items[i].is_installed &&
		    !probe_text_mark(&probes->text, TEXT_LOCKED, probes->sites.items[i].address,
				     probes->sites.items[i].plan.lock_size, true))
			return &kymo_error_no_memory;
	return NULL;
}

/* Before the time is spent that planning so many takes. */
static struct kymo_error *check_number(const struct kymo_probes *probes)
{
	size_t room = KYMO_JOURNAL_CAPACITY - (size_t)probes->shared.n_sites, asked = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		asked += is_to_plan(&probes->sites.items[i]);
	if (asked <= room)
		return NULL;
	return kymo_error_create(KYMO_ERROR_FAILED,
				 "a recording of one process can have %zu%s probes, and %zu are asked for; ask for "
				 "fewer, by a glob that matches less",
				 room, probes->shared.n_sites ? " more" : "", asked);
}

/* Where breakpoints are that are no pads. */
static struct kymo_error *mark_kept(struct kymo_probes *probes)
{
	const struct kymo_probes_traps *traps = probes->wanted.options.traps;

	for (size_t i = 0; traps && i < traps->n_kept; i++)
		if (!probe_text_mark(&probes->text, TEXT_LOCKED, traps->kept[i], 1, true) ||
		    !probe_text_mark(&probes->text, TEXT_UNSTEADY, traps->kept[i], 1, true))
			return &kymo_error_no_memory;
	return NULL;
}

/* What a site keeps of the text, whose plan stays. False when memory is out. */
static bool mark_planned(struct probe_text *text, const struct probe_site *site)
{
	uint8_t patch[KYMO_PATCH_MAX];

	return !probes_patch_of(site, patch) &&
	       (site->is_standby || probe_text_write(text, site->address, patch, site->plan.patch_size)) &&
	       probe_text_mark(text, TEXT_LOCKED, site->address, site->plan.lock_size, true) &&
	       (site->is_installed || probe_text_mark(text, TEXT_PENDING, site->address, site->plan.patch_size, true));
}

struct kymo_error *probes_forget_plans(struct kymo_probes *probes)
{
	bool is_marked = true;
	size_t kept = 0;

	probe_text_deinit(&probes->text);
	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];

		if (!site->is_installed && !site->is_retired && !site->is_revived && !site->is_guard &&
		    !site->is_watch && !site->was_watch && !site->is_strike && !site->was_strike && !site->requests.n) {
			probes_site_deinit(site);
			continue;
		}
		if (!site->is_retired && !site->is_installed && !site->is_revived) {
			site->is_planned = site->wants_flags = false;
			site->link = site->behind = 0;
		} else if (!site->is_retired) {
			is_marked &= mark_planned(&probes->text, site);
		}
		probes->sites.items[kept++] = *site;
	}
	probes->sites.n = kept;
	return is_marked ? NULL : &kymo_error_no_memory;
}

static int by_address(const void *a, const void *b)
{
	const struct probe_trampoline *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Another recording has come while the library was away from this one: what was planned before does not hold in it. */
static void plan_revived_anew(struct kymo_probes *probes, const struct probe_peers *peers)
{
	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];
		size_t module = site->module;

		if (!site->is_revived || !probes_peers_have(peers, site->address, site->plan.lock_size))
			continue;
		for (size_t k = 0; k < probes->sites.n; k++)
			if (probes->sites.items[k].module == module)
				probes->sites.items[k].is_revived = false;
	}
}

/* What others have in the text, or may change there. False when memory is out. */
static bool mark_text(struct planning *planning)
{
	struct kymo_probes *probes = planning->probes;
	const struct probe_snapshot *snapshot = planning->snapshot;

	return probes_peers_remember(&snapshot->peers, probes) && probes_peers_mark(&snapshot->peers, &probes->text) &&
	       probes_mark_modified(probes, &snapshot->maps, &snapshot->bytes, &probes->text) &&
	       probes_mark_kernel(probes, &probes->text) && probes_mark_markers(probes, &probes->text);
}

/* Probes would be in text that no thread executes: each of the two refuses the other. */
static struct kymo_error *check_clones(const struct kymo_probes *probes, const struct probe_snapshot *snapshot)
{
	const uint64_t beside = probes->beside ? kymo_probes_inode(probes->beside) : 0;

	for (size_t i = 0; i < snapshot->peers.n; i++) {
		if (snapshot->peers.items[i].inode == beside)
			continue;
		if (snapshot->peers.items[i].header.arena_address)
			return kymo_error_create(
				KYMO_ERROR_BUSY,
				"process %d runs clones of its functions, for a recording of branches: it can "
				"have no probes until that has ended",
				probes->pid);
		if (probes->wanted.options.clones)
			return kymo_error_create(KYMO_ERROR_BUSY,
						 "process %d has probes of another recording: its functions can't be "
						 "cloned until that has ended",
						 probes->pid);
	}
	return NULL;
}

static struct kymo_error *plan_once(struct kymo_probes *probes, const struct probe_snapshot *snapshot,
				    struct probe_layout *layout, bool *contended)
{
	struct planning planning = {
		.probes = probes,
		.snapshot = snapshot,
		.layout = layout,
		.order = (uint32_t)probes->shared.n_sites,
	};
	uint64_t pads_used = probes->shared.pads_used;
	struct kymo_error *error = kymo_maps_copy(&snapshot->maps, &planning.maps);

	probes->faults.watched |= kymo_faults_of(snapshot->status.handled_signals);
	if (!error) {
		plan_revived_anew(probes, &snapshot->peers);
		error = probes_forget_plans(probes);
	}
	if (!error)
		error = check_clones(probes, snapshot);
	if (!error)
		error = take_duty(probes, snapshot);
	if (!error)
		error = check_number(probes);
	if (!error)
		error = mark_wanted(probes);
	if (!error)
		error = mark_kept(probes);
	if (!error && !mark_text(&planning))
		error = &kymo_error_no_memory;
	if (!error && !probes_prepare_switches(probes, &snapshot->peers, &snapshot->maps))
		error = kymo_error_create(KYMO_ERROR_BUSY,
					  "16 recordings of process %d have markers on; there can be no more",
					  probes->pid);
	if (!error)
		error = probes_refuse_switches(probes, snapshot);
	if (!error)
		error = allocate_duty(probes);
	for (size_t i = 0; i < probes->sites.n && !error && !probes->wanted.options.traps; i++)
		if (is_to_plan(&probes->sites.items[i])) /* in the order of addresses, and so shown */
			error = probes_make_events(probes, &probes->sites.items[i]);
	if (!error)
		error = probes->wanted.options.clones ? probes_plan_clones(&planning) : plan_all(&planning);
	if (!error)
		error = probes_rest_switches(probes);
	if (error)
		probes->shared.pads_used = pads_used;
	else if (layout->trampolines.n)
		qsort(layout->trampolines.items, layout->trampolines.n, sizeof(*layout->trampolines.items), by_address);
	*contended |= planning.is_contended;
	probe_pool_deinit(&planning.pool);
	kymo_maps_deinit(&planning.maps);
	return error;
}

struct kymo_error *probes_plan(struct kymo_probes *probes, const struct probe_snapshot *snapshot,
			       struct probe_layout *ret, bool *contended_ret)
{
	*contended_ret = false;
	for (;;) {
		struct probe_layout layout = { .stretches = { 0 } };
		uint64_t pads_used = probes->shared.pads_used;
		struct kymo_error *error = plan_once(probes, snapshot, &layout, contended_ret);

		if (!error && probes_refuse_together(probes)) {
			probes_layout_deinit(&layout);
			probes->shared.pads_used = pads_used;
			continue;
		}
		if (error) {
			probes_layout_deinit(&layout);
			kymo_error_destroy(probes_forget_plans(probes));
			return error;
		}
		*ret = layout;
		return NULL;
	}
}
