/*
 * Other recordings of the same process. Their journals tell what they have changed; links and the words `next` tell in
 * what order pads of the same site run (wire/shared.h). All of it is the target's memory, so it is looked at with the
 * same distrust as the target.
 */
#include "probe/coexist/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/plan.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/coexist/link.h"
#include "probe/coexist/text.h"
#include "probe/memory/sessions.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "proc/memory.h"

/* ---- reading --------------------------------------------------------------------------------- */

#define PAGES 4 /* of text and of trampolines; entries that follow each other lie near each other */

/* Pages that were read last: of each page that many entries ask for. */
struct reader {
	struct kymo_process *process;
	struct reader_page {
		uint64_t address; /* 0: none */
		uint8_t bytes[KYMO_PAGE_SIZE];
	} pages[PAGES];
};

static const struct reader_page *read_page(struct reader *reader, uint64_t address)
{
	struct reader_page *page = &reader->pages[address / KYMO_PAGE_SIZE % PAGES];

	if (!address) /* which stands for no page */
		return NULL;
	if (page->address == address)
		return page;
	page->address = 0;
	if (kymo_process_read(reader->process, address, page->bytes, sizeof(page->bytes)))
		return NULL;
	page->address = address;
	return page;
}

static int read_bytes(void *data, uint64_t address, void *ret, size_t size)
{
	struct reader *reader = data;
	const struct reader_page *page;

	if (!kymo_page_has(address, size))
		return kymo_process_read(reader->process, address, ret, size);
	page = read_page(reader, kymo_page_down(address));
	if (!page)
		return -EIO;
	memcpy(ret, page->bytes + (address - page->address), size);
	return 0;
}

static struct probe_peer_entry look_at_entry(struct reader *reader, const struct kymo_session *peer, size_t index)
{
	const struct kymo_wire_site *site = &peer->sites[index];
	const bool is_probe = !(site->flags & (KYMO_WIRE_GUARD | KYMO_WIRE_SWITCH | KYMO_WIRE_CATCH)),
		   was_in = index < peer->header.n_installed && !(site->flags & KYMO_WIRE_STANDBY);
	struct probe_peer_entry entry = { .owner = peer, .site = site };
	uint8_t now[KYMO_WIRE_PATCH_MAX], hop[KYMO_SHORT_JUMP_SIZE];

	if (site->patch_size > sizeof(now))
		return entry;
	if (read_bytes(reader, site->address, now, site->patch_size)) {
		entry.is_dormant = was_in;
		return entry;
	}
	entry.is_dormant = was_in && !memcmp(now, site->original, site->patch_size);
	/* A site that was planned anew has an entry of the same short patch still. */
	entry.is_head = is_probe && !memcmp(now, site->patched, site->patch_size) &&
			probe_jump_by(read_bytes, reader, site->link) == site->entry &&
			probe_leads_to_link_by(read_bytes, reader, site->address, site->patch_size, site->link);
	if (site->tactic == KYMO_TACTIC_NEIGHBOR && !read_bytes(reader, site->address, hop, sizeof(hop)))
		entry.hop = kymo_short_jump_target(site->address, hop);
	return entry;
}

/* Of the entries at `only`, or of all if that is 0. */
static struct kymo_error *look_at_text(struct kymo_process *process, struct probe_peers *peers, uint64_t only)
{
	kymo_cleanup_free struct reader *reader = calloc(1, sizeof(*reader));
	bool has_duty = false;
	size_t n = 0;

	for (size_t i = 0; i < peers->n; i++)
		n += peers->items[i].n_sites;
	peers->entries = calloc(n ? n : 1, sizeof(*peers->entries));
	if (!reader || !peers->entries)
		return &kymo_error_no_memory;
	reader->process = process;
	for (size_t i = 0; i < peers->n; i++) {
		const struct kymo_session *peer = &peers->items[i];

		for (size_t k = 0; k < peer->n_sites; k++)
			if (!only || peer->sites[k].address == only)
				peers->entries[peers->n_entries++] = look_at_entry(reader, peer, k);
		if (only || has_duty || !kymo_session_has_guards(process, peer))
			continue;
		has_duty = true;
		peers->duty = peer->header.vforks;
	}
	return NULL;
}

static struct kymo_error *read_peers(struct kymo_probes *probes, uint64_t only, struct probe_peers *ret)
{
	struct probe_peers peers = { .n = 0 };
	struct kymo_session_list list;
	struct kymo_error *error = kymo_sessions_read_journals(probes->process, kymo_probes_inode(probes), &list);

	if (error)
		return error;
	peers.items = list.items;
	peers.n = list.n;
	error = look_at_text(probes->process, &peers, only);
	if (error) {
		probes_peers_deinit(&peers);
		return error;
	}
	*ret = peers;
	return NULL;
}

struct kymo_error *probes_peers_read(struct kymo_probes *probes, struct probe_peers *ret)
{
	return read_peers(probes, 0, ret);
}

struct kymo_error *probes_peers_read_at(struct kymo_probes *probes, uint64_t address, struct probe_peers *ret)
{
	return read_peers(probes, address, ret);
}

void probes_peers_deinit(struct probe_peers *peers)
{
	struct kymo_session_list list = { .items = peers->items, .n = peers->n };

	free(peers->entries);
	kymo_sessions_deinit(&list);
	*peers = (struct probe_peers){ .n = 0 };
}

/* ---- what was read --------------------------------------------------------------------------- */

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
	struct kymo_error *error = kymo_sessions_read_headers(probes->process, kymo_probes_inode(probes), &list);
	bool same = true;

	if (error)
		return error;
	for (size_t i = 0; i < list.n; i++)
		same &= was_seen(probes, &list.items[i]);
	*same_ret = same && list.n == probes->seen.n;
	kymo_sessions_deinit(&list);
	return NULL;
}

bool probes_peers_mark(const struct probe_peers *peers, struct probe_text *text)
{
	for (size_t i = 0; i < peers->n_entries; i++) {
		const struct kymo_wire_site *site = peers->entries[i].site;
		size_t lock = site->lock_size, patch = site->patch_size;

		if (patch > KYMO_WIRE_PATCH_MAX || lock > 64 || peers->entries[i].is_dormant)
			continue;
		if (!probe_text_mark(text, TEXT_LOCKED, site->address, lock, true) ||
		    !probe_text_mark(text, TEXT_UNSTEADY, site->address, patch, true))
			return false;
	}
	return true;
}

bool probes_peers_have(const struct probe_peers *peers, uint64_t address, size_t size)
{
	for (size_t i = 0; i < peers->n_entries; i++) {
		const struct kymo_wire_site *site = peers->entries[i].site;
		size_t taken = site->lock_size > site->patch_size ? site->lock_size : site->patch_size;

		if (site->address < address + size && address < site->address + taken && !peers->entries[i].is_dormant)
			return true;
	}
	return false;
}

const struct probe_peer_entry *probes_peers_head(const struct probe_peers *peers, uint64_t address)
{
	for (size_t i = 0; i < peers->n_entries; i++)
		if (peers->entries[i].is_head && peers->entries[i].site->address == address)
			return &peers->entries[i];
	return NULL;
}

/* The entry at `address` whose pad others go on to at `inner`, or NULL. */
static const struct kymo_wire_site *entry_within(const struct probe_peers *peers, uint64_t address, uint64_t inner)
{
	for (size_t i = 0; i < peers->n_entries; i++)
		if (peers->entries[i].site->address == address && peers->entries[i].site->inner == inner)
			return peers->entries[i].site;
	return NULL;
}

bool probes_peers_leave_out(const struct probe_peers *peers, uint64_t address, uint64_t inner)
{
	const struct probe_peer_entry *head = probes_peers_head(peers, address);
	const struct kymo_wire_site *at = head ? head->site : NULL;

	for (size_t i = 0; at && i <= peers->n; i++) {
		if (at->next == inner)
			return false;
		if (!at->next || at->next == at->displaced)
			return true;
		at = entry_within(peers, address, at->next);
	}
	return false;
}

bool probes_peers_are_busy_at(const struct probe_peers *peers, uint64_t address)
{
	for (size_t i = 0; i < peers->n_entries; i++)
		if (peers->entries[i].site->address == address && !peers->entries[i].is_dormant &&
		    !(peers->entries[i].site->flags & (KYMO_WIRE_GUARD | KYMO_WIRE_SWITCH)))
			return true;
	return false;
}

bool probes_peers_rely_on(const struct probe_peers *peers, uint64_t address, size_t size)
{
	for (size_t i = 0; i < peers->n_entries; i++) {
		const struct kymo_wire_site *site = peers->entries[i].site;

		if (site->address != address && site->address < address + size &&
		    address < site->address + site->lock_size)
			return true;
	}
	return false;
}

bool probe_peer_entry_stretch(const struct probe_peer_entry *entry, struct kymo_wire_trampolines *ret)
{
	for (size_t i = 0; i < entry->owner->n_trampolines; i++) {
		if (entry->site->link - entry->owner->trampolines[i].address >= entry->owner->trampolines[i].size)
			continue;
		*ret = entry->owner->trampolines[i];
		return true;
	}
	return false;
}
