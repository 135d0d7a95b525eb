/*
 * Other recordings of the same process. Their journals tell what they have changed; links and the words `next` tell in
 * what order pads of the same place run (wire/shared.h). All of it is the target's memory, so it is looked at with the
 * same distrust as the target.
 */
#include "probe/coexist/peers.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/coexist/link.h"
#include "probe/coexist/text.h"
#include "probe/memory/sessions.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "proc/proc.h"

struct kymo_error *probes_peers_read(struct kymo_probes *probes, struct probe_peers *ret)
{
	struct kymo_session_list list;
	struct kymo_error *error = kymo_sessions_read(probes->process, &list);

	if (error)
		return error;
	for (size_t i = 0; i < list.n; i++) {
		struct kymo_session own = list.items[i];

		if (own.inode != kymo_probes_inode(probes))
			continue;
		list.items[i] = list.items[list.n - 1];
		list.items[list.n - 1] = own;
		list.n--;
		free(own.sites);
		free(own.runs);
		break;
	}
	*ret = (struct probe_peers){ list.items, list.n };
	return NULL;
}

void probes_peers_deinit(struct probe_peers *peers)
{
	struct kymo_session_list list = { .items = peers->items, .n = peers->n };

	kymo_sessions_deinit(&list);
	*peers = (struct probe_peers){ .n = 0 };
}

bool probes_peers_remember(const struct probe_peers *peers, struct kymo_probes *probes)
{
	probes->seen.n = 0;
	for (size_t i = 0; i < peers->n; i++)
		if (!kymo_vec_push(&probes->seen,
				   (struct probe_seen){ peers->items[i].inode, peers->items[i].header.generation }))
			return false;
	return true;
}

static bool was_seen(const struct kymo_probes *probes, const struct kymo_session *other)
{
	for (size_t i = 0; i < probes->seen.n; i++)
		if (probes->seen.items[i].inode == other->inode)
			return probes->seen.items[i].generation == other->header.generation;
	return false;
}

struct kymo_error *probes_peers_check(struct kymo_probes *probes, bool *same_ret)
{
	struct kymo_session_list list;
	struct kymo_error *error = kymo_sessions_read_headers(probes->process, &list);
	size_t n = 0;
	bool same = true;

	if (error)
		return error;
	for (size_t i = 0; i < list.n; i++) {
		if (list.items[i].inode == kymo_probes_inode(probes))
			continue;
		same &= was_seen(probes, &list.items[i]);
		n++;
	}
	*same_ret = same && n == probes->seen.n;
	kymo_sessions_deinit(&list);
	return NULL;
}

/* An entry that was in the text and is not now: its library was unloaded, and may be back; or it is on its way out. */
static bool is_dormant(const struct kymo_probes *probes, const struct kymo_session *other, size_t index)
{
	const struct kymo_wire_site *site = &other->sites[index];
	uint8_t now[KYMO_WIRE_PATCH_MAX];

	return index < other->header.n_installed && !(site->flags & KYMO_WIRE_STANDBY) &&
	       site->patch_size <= sizeof(now) &&
	       (kymo_process_read(probes->process, site->address, now, site->patch_size) ||
		!memcmp(now, site->original, site->patch_size));
}

bool probes_peers_mark(const struct kymo_probes *probes, const struct probe_peers *peers, struct probe_text *text)
{
	for (size_t i = 0; i < peers->n; i++)
		for (size_t k = 0; k < peers->items[i].n_sites; k++) {
			const struct kymo_wire_site *site = &peers->items[i].sites[k];
			size_t lock = site->lock_size, patch = site->patch_size;

			if (patch > KYMO_WIRE_PATCH_MAX || lock > 64 || is_dormant(probes, &peers->items[i], k))
				continue;
			if (!probe_text_mark(text, TEXT_LOCKED, site->address, lock, true) ||
			    !probe_text_mark(text, TEXT_UNSTEADY, site->address, patch, true))
				return false;
		}
	return true;
}

bool probes_peers_have(const struct kymo_probes *probes, const struct probe_peers *peers, uint64_t address, size_t size)
{
	for (size_t i = 0; i < peers->n; i++)
		for (size_t k = 0; k < peers->items[i].n_sites; k++) {
			const struct kymo_wire_site *site = &peers->items[i].sites[k];
			size_t taken = site->lock_size > site->patch_size ? site->lock_size : site->patch_size;

			if (site->address < address + size && address < site->address + taken &&
			    !is_dormant(probes, &peers->items[i], k))
				return true;
		}
	return false;
}

const struct kymo_wire_site *probes_peers_head(const struct kymo_probes *probes, const struct probe_peers *peers,
					       uint64_t address)
{
	for (size_t i = 0; i < peers->n; i++)
		for (size_t k = 0; k < peers->items[i].n_sites; k++) {
			const struct kymo_wire_site *site = &peers->items[i].sites[k];
			uint8_t now[KYMO_WIRE_PATCH_MAX];

			if (site->address != address || site->flags & (KYMO_WIRE_GUARD | KYMO_WIRE_SWITCH) ||
			    site->patch_size > sizeof(now) ||
			    probe_jump_at(probes->process, site->link) != site->entry ||
			    !probe_leads_to_link(
				    probes->process, address, site->patch_size,
				    site->link)) /* planned anew: an entry of the same short patch is there still */
				continue;
			if (!kymo_process_read(probes->process, address, now, site->patch_size) &&
			    !memcmp(now, site->patched, site->patch_size))
				return site;
		}
	return NULL;
}

/* The entry at `address` whose pad others go on to at `inner`, or NULL. */
static const struct kymo_wire_site *entry_within(const struct probe_peers *peers, uint64_t address, uint64_t inner)
{
	for (size_t i = 0; i < peers->n; i++)
		for (size_t k = 0; k < peers->items[i].n_sites; k++)
			if (peers->items[i].sites[k].address == address && peers->items[i].sites[k].inner == inner)
				return &peers->items[i].sites[k];
	return NULL;
}

bool probes_peers_leave_out(const struct kymo_probes *probes, const struct probe_peers *peers,
			    const struct probe_site *site)
{
	const struct kymo_wire_site *at = probes_peers_head(probes, peers, site->address);

	for (size_t i = 0; at && i <= peers->n; i++) {
		if (at->next == site->pad + site->layout.inner)
			return false;
		if (!at->next || at->next == at->displaced)
			return true;
		at = entry_within(peers, site->address, at->next);
	}
	return false;
}

bool probes_peers_are_busy_at(const struct kymo_probes *probes, const struct probe_peers *peers, uint64_t address)
{
	for (size_t i = 0; i < peers->n; i++)
		for (size_t k = 0; k < peers->items[i].n_sites; k++)
			if (peers->items[i].sites[k].address == address &&
			    !(peers->items[i].sites[k].flags & (KYMO_WIRE_GUARD | KYMO_WIRE_SWITCH)) &&
			    !is_dormant(probes, &peers->items[i], k))
				return true;
	return false;
}

bool probes_peers_rely_on(const struct probe_peers *peers, uint64_t address, size_t size)
{
	for (size_t i = 0; i < peers->n; i++)
		for (size_t k = 0; k < peers->items[i].n_sites; k++) {
			const struct kymo_wire_site *site = &peers->items[i].sites[k];

			if (site->address != address && site->address < address + size &&
			    address < site->address + site->lock_size)
				return true;
		}
	return false;
}

static const struct kymo_session *owner_of(const struct probe_peers *peers, const struct kymo_wire_site *entry)
{
	for (size_t i = 0; i < peers->n; i++)
		if (entry >= peers->items[i].sites && entry < peers->items[i].sites + peers->items[i].n_sites)
			return &peers->items[i];
	return NULL;
}

bool probes_peers_run(const struct probe_peers *peers, const struct kymo_wire_site *entry, struct kymo_wire_run *ret)
{
	const struct kymo_session *owner = owner_of(peers, entry);

	for (size_t i = 0; owner && i < owner->n_runs; i++) {
		if (entry->link - owner->runs[i].address >= owner->runs[i].size)
			continue;
		*ret = owner->runs[i];
		return true;
	}
	return false;
}

uint64_t probes_peers_duty(const struct kymo_probes *probes, const struct probe_peers *peers)
{
	for (size_t i = 0; i < peers->n; i++)
		if (kymo_session_has_guards(probes->process, &peers->items[i]))
			return peers->items[i].header.vforks;
	return 0;
}
