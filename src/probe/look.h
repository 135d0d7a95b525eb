/* What the files of the look share: look.c takes it, mend.c changes text. Private to the room. */
#ifndef KYMO_PROBE_LOOK_H
#define KYMO_PROBE_LOOK_H

#include "probe/probes.h"

/* What the text at a site is. */
enum look_text {
	LOOK_JUMP,	/* the jump of this recording, or one that leads to its pad by way of another recording's */
	LOOK_FILE,	/* the file's bytes: nobody's jump is there */
	LOOK_YIELDED,	/* a breakpoint, and no byte of a jump behind it */
	LOOK_TORN,	/* a breakpoint or the file's first byte before the rest of a jump; or a jump that leads elsewhere as bytes that it relies on have changed */
	LOOK_OTHER,	/* something else has patched it: left alone */
	LOOK_UNREAD,	/* it cannot be read, and has not been: its process is at its end, or its library has gone */
};

/* A site that has been seen in. */
struct look_site {
	uint64_t address;
	bool is_out;
	bool is_file;		/* it is out, and the text is the file's: it can be put in again */
	size_t gap;		/* that it is of, when it is out */
};

/* Bytes of sites on one page. */
struct look_stretch {
	uint64_t address;
	size_t size, at;	/* at: in `seen` and `now` */
	bool is_unread;		/* what stands there means nothing */
};

struct kymo_look {
	struct kymo_probes *probes;
	struct kymo_process *process;
	uint64_t changes;			/* of the probes', for which `stretches` are; 0: none */
	KYMO_VEC(struct look_stretch) stretches;
	uint8_t *seen, *now;
	size_t size;				/* of each */
	bool is_seen;				/* `seen` is what was there at the last look, and nothing was to be done */
	KYMO_VEC(struct look_site) sites;	/* sorted by address */
	KYMO_VEC(struct kymo_gap) gaps;
	uint64_t last_tsc;			/* of the last look */
	uint64_t again_ns;			/* not put in again before that */
	uint64_t pause_ns;			/* before the next time */
};

/* The `size` bytes at `address`, as this look has read them; false where it has not. */
bool look_bytes(const struct kymo_look *look, uint64_t address, uint8_t *out, size_t size);

/* Read all stretches. What cannot be read is taken for unchanged, if it has been read before. */
void look_read(struct kymo_look *look);

/* ---- mend.c ------------------------------------------------------------------------------------------------------- */

/* Classify what is at `site` in the bytes of the look. */
enum look_text look_at_site(struct kymo_look *look, const struct probe_site *site);

/*
 * Give the torn places of the process the file's bytes behind what is not kymo's, and take jumps out that rely on them. The process is stopped for this and resumed if it ran. BUSY: it has another tracer,
 * nothing was done.
 */
struct kymo_error *look_mend(struct kymo_look *look, uint64_t *stopped_ns_ret);

#endif
