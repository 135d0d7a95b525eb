#include "probe/plan/clone_beside.h"

#include "arch/clone.h"
#include "arch/plan.h"
#include "base/search.h"
#include "probe/coexist/text.h"
#include "probe/plan/allocate.h"
#include "probe/probes.h"
#include "probe/site/sites.h"

static const struct probe_site *site_at(const struct kymo_probes *others, uint64_t address)
{
	const size_t at = kymo_partition_point(i, others->sites.n, others->sites.items[i].address < address);

	return at < others->sites.n && others->sites.items[at].address == address ? &others->sites.items[at] : NULL;
}

const struct probe_site *probes_before(const struct kymo_probes *probes, uint64_t address)
{
	const struct probe_site *site = probes->beside ? site_at(probes->beside, address) : NULL;

	return site && site->is_installed && !site->is_retired && !site->is_guard && !site->plan.is_evicted &&
			       site->layout.hop
		       ? site
		       : NULL;
}

/* Bytes from its address that it changes, or relies on. */
static uint64_t size_of(const struct probe_site *site)
{
	const uint64_t most = site->plan.window > site->plan.lock_size ? site->plan.window : site->plan.lock_size;

	return most > site->plan.patch_size ? most : site->plan.patch_size;
}

/* Whether there is any in the part but the one at `entry`. */
static bool has_probes(const struct kymo_probes *others, const struct kymo_extent *part, uint64_t bias, uint64_t entry)
{
	const uint64_t start = part->start + bias, end = part->end + bias;
	size_t i = kymo_partition_point(k, others->sites.n, others->sites.items[k].address + KYMO_WINDOW_MAX < start);

	for (; i < others->sites.n && others->sites.items[i].address < end; i++) {
		const struct probe_site *site = &others->sites.items[i];

		if (site->is_planned && !site->is_retired && site->address != entry &&
		    site->address + size_of(site) > start)
			return true;
	}
	return false;
}

/* Whether the jump at a catch, or at its island, would be where a probe's is, or what that relies on. */
static bool is_locked(const struct kymo_probes *others, const struct kymo_catch *catch, uint64_t bias)
{
	if (!catch->island)
		return probe_text_is(&others->text, TEXT_LOCKED, catch->vaddr + bias, KYMO_JUMP_SIZE);
	return probe_text_is(&others->text, TEXT_LOCKED, catch->vaddr + bias, KYMO_SHORT_JUMP_SIZE) ||
	       probe_text_is(&others->text, TEXT_LOCKED, catch->island + bias, KYMO_JUMP_SIZE);
}

void probes_put_jumps(const struct kymo_probes *probes, uint64_t address, uint8_t *bytes, size_t size)
{
	const struct kymo_probes *others = probes->beside;
	size_t i = others ? kymo_partition_point(k, others->sites.n,
						 others->sites.items[k].address + KYMO_WINDOW_MAX < address)
			  : 0;

	for (; others && i < others->sites.n && others->sites.items[i].address < address + size; i++) {
		const struct probe_site *site = &others->sites.items[i];
		uint8_t patch[KYMO_PATCH_MAX];

		if (site != probes_before(probes, site->address) || probes_patch_of(site, patch))
			continue;
		for (size_t k = 0; k < site->plan.patch_size; k++)
			if (site->address + k >= address && site->address + k - address < size)
				bytes[site->address + k - address] = patch[k];
	}
}

static const struct kymo_catch *entry_of(const struct kymo_clone *clone)
{
	const struct kymo_catch *catches;
	size_t n;

	catches = kymo_clone_catches(clone, &n);
	for (size_t i = 0; i < n; i++)
		if (catches[i].kind == KYMO_CATCH_ENTRY)
			return &catches[i];
	return NULL;
}

bool probes_are_in_the_way(const struct kymo_probes *probes, const struct kymo_clone *clone, uint64_t bias,
			   size_t *n_hops_ret)
{
	const struct kymo_probes *others = probes->beside;
	const struct kymo_catch *entry = entry_of(clone), *catches;
	const struct kymo_extent *parts;
	const struct probe_site *probe;
	size_t n;

	if (!others)
		return false;
	probe = entry && !entry->island ? probes_before(probes, entry->vaddr + bias) : NULL;
	if (probe && kymo_clone_comes_back(clone))
		return true;
	parts = kymo_clone_parts(clone, &n);
	for (size_t i = 0; i < n; i++)
		if (has_probes(others, &parts[i], bias, probe ? probe->address : 0))
			return true;
	catches = kymo_clone_catches(clone, &n);
	for (size_t i = 0; i < n; i++)
		if (!(probe && &catches[i] == entry) && is_locked(others, &catches[i], bias))
			return true;
	*n_hops_ret += probe != NULL;
	return false;
}
