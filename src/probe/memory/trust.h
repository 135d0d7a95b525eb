/* What a journal says, held against the files that are mapped: a process can put memory of its own in the place of
 * kymo's. Private to the room. */
#ifndef KYMO_PROBE_MEMORY_TRUST_H
#define KYMO_PROBE_MEMORY_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "marker/marker.h"

struct kymo_map;
struct kymo_maps;
struct kymo_module;
struct kymo_process;
struct kymo_session;
struct kymo_wire_site;

/* The file that was looked at last: thousands of sites are in one. Begins as zero, with the process. */
struct probe_trust {
	struct kymo_process *process;
	const struct kymo_map *map; /* of that file; NULL: none yet */
	int file;                   /* or -1: it can't be opened */
	bool has_markers;           /* was looked for them */
	struct kymo_module *module; /* NULL: it can't be read */
	struct kymo_marker_list *markers;
};

void probe_trust_deinit(struct probe_trust *trust);

/* Whether the file of `map`, which holds `address`, has these bytes there (KYMO_WIRE_PATCH_MAX at most); false where it
 * can't be opened. */
bool probe_trust_is_of_file(struct probe_trust *trust, const struct kymo_map *map, uint64_t address, const void *bytes,
			    size_t size);

/* Whether the original bytes of an entry for a file's text may be what the file has. True where that can't be opened.
 */
bool probe_trust_original(struct probe_trust *trust, const struct kymo_map *map, const struct kymo_wire_site *site);

/* Whether the site of an entry is one that text may be in: in `map`, which is private, and executable. */
bool probe_trust_is_text(const struct kymo_map *map, const struct kymo_wire_site *site);

/* Whether the link of an entry is its site, or in a trampoline. */
bool probe_trust_is_link(const struct kymo_maps *maps, const struct kymo_wire_site *site);

/* Whether `address` is in pads of a recording. */
bool probe_trust_is_pad(const struct kymo_maps *maps, const struct kymo_session *session, uint64_t address);

/* Whether an entry of a switch, whose site is in `map`, is what the file's notes say of a marker. */
bool probe_trust_switch(struct probe_trust *trust, const struct kymo_maps *maps, const struct kymo_map *map,
			const struct kymo_wire_site *site);

#endif
