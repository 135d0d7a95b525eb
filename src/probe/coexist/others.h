/* What other recordings have in the process. Private to the room. */
#ifndef KYMO_PROBE_COEXIST_OTHERS_H
#define KYMO_PROBE_COEXIST_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;
struct kymo_remains;
struct kymo_wire_run;
struct kymo_wire_site;
struct probe_site;
struct probe_text;

/* How far another recording was when something was planned. */
struct probe_seen {
	uint64_t inode, generation;
};

/* What other recordings have in the process. */
struct probe_others {
	struct kymo_remains *items;
	size_t n;
};

struct kymo_error *probes_others_read(struct kymo_probes *probes, struct probe_others *ret);
void probes_others_deinit(struct probe_others *others);

/* Keep in mind what there is, for the plans that are made now. False when memory is out. */
bool probes_others_remember(const struct probe_others *others, struct kymo_probes *probes);

/* Whether it is still the same. */
struct kymo_error *probes_others_check(struct kymo_probes *probes, bool *same_ret);

/* Mark what they have changed and rely on. False when memory is out. */
bool probes_others_mark(const struct kymo_probes *probes, const struct probe_others *others, struct probe_text *text);

/* The entry whose pad the link at `address` leads to, of a probe or an evicted instruction, or NULL. */
const struct kymo_wire_site *probes_others_head(const struct kymo_probes *probes, const struct probe_others *others,
						uint64_t address);

/* Whether threads that come to this site run pads of other recordings, and not its. False where that can't be told. */
bool probes_others_leave_out(const struct kymo_probes *probes, const struct probe_others *others,
			     const struct probe_site *site);

/* Whether another recording is about to put a probe there, or to take one out. */
bool probes_others_are_busy_at(const struct kymo_probes *probes, const struct probe_others *others, uint64_t address);

/* Whether a jump of another recording's that is in the text is made of any of these bytes, or relies on it. */
bool probes_others_have(const struct kymo_probes *probes, const struct probe_others *others, uint64_t address,
			size_t size);

/* Whether a jump of some other entry is made of bytes of [address, address + size). */
bool probes_others_rely_on(const struct probe_others *others, uint64_t address, size_t size);

/* The run of trampolines that has `link`, of whoever `entry` is. False when there is none. */
bool probes_others_run(const struct probe_others *others, const struct kymo_wire_site *entry,
		       struct kymo_wire_run *ret);

/* The recording whose guards are in the text: its list of vforks, or 0. */
uint64_t probes_others_duty(const struct kymo_probes *probes, const struct probe_others *others);

#endif
