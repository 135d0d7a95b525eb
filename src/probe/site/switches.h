/* Turning markers on and off. Private to the room. */
#ifndef KYMO_PROBE_SITE_SWITCHES_H
#define KYMO_PROBE_SITE_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/page.h"

struct kymo_maps;
struct kymo_marker;
struct kymo_marker_switch;
struct kymo_probes;
struct kymo_process;
struct kymo_session;
struct kymo_wire_site;
struct probe_bytes;
struct probe_peers;
struct probe_trust;

/*
 * What turns a marker on: a counter of the parties that want it, in the process's data, and for kymo's own a jump in
 * the text. Puts nothing of a recording's into the text: several recordings have the same.
 */
struct probe_switch {
	size_t module;
	uint64_t address;            /* of the NOP; of an SDT probe, its location, which is not changed for this */
	uint64_t target;             /* of the jump; 0: there is none */
	uint64_t counter;            /* 16 bits */
	bool is_gate;                /* the counter is that of a struct kymo_marker_gate */
	const char *provider, *name; /* of the marker; the file's */
	const char *corrupt;         /* why it can't be turned on, as it was seen last; or NULL */
	bool is_refused;             /* it stays off: it is corrupt, or no location after it can be had */
	bool was_refused;            /* before the installation that goes on now */
	uint8_t original;            /* first byte of the text at `address`, as the file has it */
	bool is_installed, is_retired;
	bool is_ready;  /* the counter's memory is there */
	bool has_entry; /* in the journal, permanently; with the next also what is being put in */
	uint64_t entry;
};

/* Add one, if it is not there yet. */
struct kymo_error *probes_add_switch(struct kymo_probes *probes, size_t module,
				     const struct kymo_marker_switch *wanted);

/* The same for the counter of an SDT probe. */
struct kymo_error *probes_add_semaphore(struct kymo_probes *probes, size_t module, const struct kymo_marker *marker);

/* Note that a module with switches is not mapped any more, or is again. */
void probes_retire_switches(struct kymo_probes *probes, size_t module, bool is_gone);

/* Choose a bit of the gates that no other recording has; look which of the pending ones can be turned on by now. False:
 * there is no free bit. */
bool probes_prepare_switches(struct kymo_probes *probes, const struct probe_peers *peers, const struct kymo_maps *maps);

size_t probes_pending_switches(const struct kymo_probes *probes);

/* Whether a spec of markers means this one, and whether one that it means is on, or will be with all that is planned.
 */
bool probes_means_switch(const struct kymo_probes *probes, size_t spec, const struct probe_switch *item);
bool probes_has_live_marker(const struct kymo_probes *probes, size_t spec);

/* ---- the journal ----------------------------------------------------------------------------- */

/* Write journal entries of the pending ones; `first` is the index of entry 0. Returns how many. */
size_t probes_journal_switches(struct kymo_probes *probes, uint64_t first, struct kymo_wire_site *out);

/* ---- with the process stopped ---------------------------------------------------------------- */

/* Whether the program is in the middle of turning one of the pending ones on or off. */
bool probes_are_switches_busy(struct kymo_probes *probes);

/* Whether the pending ones can be turned on: `corrupt_ret` is the first that can't, or NULL; each has its reason. GONE:
 * the memory of one is not mapped. */
struct kymo_error *probes_check_switches(struct kymo_probes *probes, const struct probe_switch **corrupt_ret);

/* Copy what tells whether it can be turned on. False when memory is out. */
bool probes_copy_switch(const struct probe_switch *item, struct kymo_process *process, struct probe_bytes *ret);

/* By these copies: why it can't be turned on (its text is neither the NOP nor the jump, …), or NULL. GONE as above. */
struct kymo_error *probes_look_at_switch(const struct kymo_probes *probes, const struct probe_switch *item,
					 const struct probe_bytes *bytes, const char **why_ret);

/* All pending ones, whose journal entries are written. */
struct kymo_error *probes_turn_on(struct kymo_probes *probes);

/* `file` is a page of the file open at `fd` (not consumed) from `offset` on. Set those of its bytes to `memory`'s that
 * differ because the program has turned markers on, or because of a breakpoint on a marker. */
void probe_excuse_markers(int fd, uint64_t offset, const uint8_t memory[KYMO_PAGE_SIZE], uint8_t file[KYMO_PAGE_SIZE]);

enum switch_left {
	SWITCH_RESTORED, /* no party wants it any more: it is off */
	SWITCH_CLEAN,    /* it was off, or another party wants it on */
	SWITCH_BUSY,     /* the program is changing it: try again */
	SWITCH_MODIFIED, /* there are unknown bytes */
	SWITCH_CORRUPT,  /* the file has no such marker: nothing was written */
};

/* Entry `index` of a recording that leaves. With `must_go` nothing is waited for. */
struct kymo_error *probe_turn_off(struct probe_trust *trust, const struct kymo_maps *maps,
				  const struct kymo_session *own, size_t index, bool must_go, enum switch_left *ret);

#endif
