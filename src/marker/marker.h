/*
 * What the author of a program has marked: kymo's own markers (include/kymo/marker.h, `.note.kymo`) and the SDT probes
 * of others (`.note.stapsdt`). Pure functions of a module; notes come from files that are not trusted, so each address,
 * string and operand is checked.
 */
#ifndef KYMO_MARKER_MARKER_H
#define KYMO_MARKER_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/fetch.h"
#include "wire/event.h"

struct kymo_marker_field {
	char *name; /* "fd" of "fd=%d", else "arg1" …; unique in the marker; a C identifier */
	enum kymo_type type;
};

/* One location at which a marker hands over its arguments: each copy that the compiler made of it has its own. Strings
 * belong to the list. */
struct kymo_marker {
	bool is_sdt;
	const char *provider, *name;
	const char *format; /* of kymo's; else NULL */
	const char *file;   /* where it is in the source; of kymo's, else NULL */
	uint32_t line;
	uint64_t location;  /* vaddr of the NOP at which the arguments can be read */
	uint64_t semaphore; /* vaddr of a 16-bit counter that turns it on, or 0 (SDT) */
	struct kymo_marker_field fields[KYMO_EVENT_MAX_ARGS];
	size_t n_fields;
	/* How to get them: one for each field, or one KYMO_FETCH_PAYLOAD for all. */
	struct kymo_fetch fetches[KYMO_EVENT_MAX_ARGS];
	size_t n_fetches;
	const char *why_not; /* a sentence why it can't be recorded ("its 2nd argument '8@%ymm1' is of no kind that kymo
				records"), or NULL */
};

/* What turns kymo's own markers on: a NOP of five bytes that becomes a jump to `cold`, or a byte that is tested. The
 * locations lie after it. */
struct kymo_marker_switch {
	const char *provider, *name;
	uint64_t site;      /* vaddr of the NOP; 0 in the portable form */
	uint64_t cold;      /* where it jumps */
	bool must_stay_off; /* the markers after it say why not */
	uint64_t gate;      /* vaddr of its struct kymo_marker_gate (include/kymo/marker.h), 4 bytes */
};

struct kymo_marker_list {
	struct kymo_marker *items; /* sorted by provider, name, location */
	size_t n;
	struct kymo_marker_switch *switches; /* sorted by provider, name, site */
	size_t n_switches;
	void *strings; /* private */
};

#endif
