/* What other recordings have in the process. Private to the room. */
#ifndef KYMO_PROBE_COEXIST_PEERS_H
#define KYMO_PROBE_COEXIST_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;
struct kymo_session;
struct kymo_wire_trampolines;
struct kymo_wire_site;
struct probe_text;

/* How far another recording was when something was planned. */
struct probe_seen {
	uint64_t inode, generation;
};

/* An entry of a journal, and what the text was to it when that was read. */
struct probe_peer_entry {
	const struct kymo_session *owner;
	const struct kymo_wire_site *site; /* the owner's */
	bool is_dormant; /* it was in the text and is not now: its library was unloaded, and may be back; or it leaves
			  */
	bool is_head;    /* its link leads to its pad, and the text to its link */
	uint64_t hop;    /* where the short jump at its address leads; 0: there is none */
};

/* What other recordings have in the process: copies, which nothing changes. */
struct probe_peers {
	struct kymo_session *items;
	size_t n;
	struct probe_peer_entry *entries; /* of all journals */
	size_t n_entries;
	uint64_t duty; /* of the recording whose guards are in the text: its list of vforks, or 0 */
};

/* Their journals, and then what the text is to those. */
struct kymo_error *probes_peers_read(struct kymo_probes *probes, struct probe_peers *ret);

/* The same with the entries at `address` alone, and without `duty`; `address` is not 0. */
struct kymo_error *probes_peers_read_at(struct kymo_probes *probes, uint64_t address, struct probe_peers *ret);

void probes_peers_deinit(struct probe_peers *peers);

/* Remember what there is, for the plans that are made now. False when memory is out. */
bool probes_peers_remember(const struct probe_peers *peers, struct kymo_probes *probes);

/* Whether it is still the same. */
struct kymo_error *probes_peers_check(struct kymo_probes *probes, bool *same_ret);

/* Mark what they have changed and rely on. False when memory is out. */
bool probes_peers_mark(const struct probe_peers *peers, struct probe_text *text);

/* The entry whose pad the link at `address` leads to, of a probe or an evicted instruction, or NULL. */
const struct probe_peer_entry *probes_peers_head(const struct probe_peers *peers, uint64_t address);

/* Whether threads that come to the site at `address` run pads of other recordings, and not the one whose inner entry is
 * `inner`. False where that can't be told. */
bool probes_peers_leave_out(const struct probe_peers *peers, uint64_t address, uint64_t inner);

/* Whether another recording is about to put a probe there, or to take one out. */
bool probes_peers_are_busy_at(const struct probe_peers *peers, uint64_t address);

/* Whether a jump of another recording's that is in the text is made of any of these bytes, or relies on it. */
bool probes_peers_have(const struct probe_peers *peers, uint64_t address, size_t size);

/* Whether a jump of some other entry is made of bytes of [address, address + size). */
bool probes_peers_rely_on(const struct probe_peers *peers, uint64_t address, size_t size);

/* The stretch of trampolines that has the entry's link, of any recording. False when there is none. */
bool probe_peer_entry_stretch(const struct probe_peer_entry *entry, struct kymo_wire_trampolines *ret);

#endif
