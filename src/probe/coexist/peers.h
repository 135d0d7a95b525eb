/* What other recordings have in the process. Private to the room. */
#ifndef KYMO_PROBE_COEXIST_PEERS_H
#define KYMO_PROBE_COEXIST_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;
struct kymo_session;
struct kymo_wire_run;
struct kymo_wire_site;
struct probe_site;
struct probe_text;

/* How far another recording was when something was planned. */
struct probe_seen {
	uint64_t inode, generation;
};

/* What other recordings have in the process. */
struct probe_peers {
	struct kymo_session *items;
	size_t n;
};

struct kymo_error *probes_peers_read(struct kymo_probes *probes, struct probe_peers *ret);
void probes_peers_deinit(struct probe_peers *peers);

/* Keep in mind what there is, for the plans that are made now. False when memory is out. */
bool probes_peers_remember(const struct probe_peers *peers, struct kymo_probes *probes);

/* Whether it is still the same. */
struct kymo_error *probes_peers_check(struct kymo_probes *probes, bool *same_ret);

/* Mark what they have changed and rely on. False when memory is out. */
bool probes_peers_mark(const struct kymo_probes *probes, const struct probe_peers *peers, struct probe_text *text);

/* The entry whose pad the link at `address` leads to, of a probe or an evicted instruction, or NULL. */
const struct kymo_wire_site *probes_peers_head(const struct kymo_probes *probes, const struct probe_peers *peers,
					       uint64_t address);

/* Whether threads that come to this site run pads of other recordings, and not its. False where that can't be told. */
bool probes_peers_leave_out(const struct kymo_probes *probes, const struct probe_peers *peers,
			    const struct probe_site *site);

/* Whether another recording is about to put a probe there, or to take one out. */
bool probes_peers_are_busy_at(const struct kymo_probes *probes, const struct probe_peers *peers, uint64_t address);

/* Whether a jump of another recording's that is in the text is made of any of these bytes, or relies on it. */
bool probes_peers_have(const struct kymo_probes *probes, const struct probe_peers *peers, uint64_t address,
		       size_t size);

/* Whether a jump of some other entry is made of bytes of [address, address + size). */
bool probes_peers_rely_on(const struct probe_peers *peers, uint64_t address, size_t size);

/* The run of trampolines that has `link`, of whoever `entry` is. False when there is none. */
bool probes_peers_run(const struct probe_peers *peers, const struct kymo_wire_site *entry, struct kymo_wire_run *ret);

/* The recording whose guards are in the text: its list of vforks, or 0. */
uint64_t probes_peers_duty(const struct kymo_probes *probes, const struct probe_peers *peers);

#endif
