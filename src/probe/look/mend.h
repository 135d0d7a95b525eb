/* Text that something else has changed under a jump. Private to the room. */
#ifndef KYMO_PROBE_LOOK_MEND_H
#define KYMO_PROBE_LOOK_MEND_H

#include <stdint.h>

#include "base/error.h"

struct kymo_look;
struct probe_site;

/* What the text at a site is. */
enum look_text {
	LOOK_JUMP,    /* the jump of this recording, or one that leads to its pad by way of another recording's */
	LOOK_FILE,    /* the file's bytes: no recording's jump is there */
	LOOK_YIELDED, /* a breakpoint, and no byte of a jump after it */
	LOOK_TORN, /* a breakpoint or the file's first byte before the rest of a jump; or a jump that leads elsewhere as
		      bytes that it relies on have changed */
	LOOK_OTHER,  /* something else has patched it: left alone */
	LOOK_UNREAD, /* it cannot be read, and has not been: its process is at its end, or its library has gone */
};

/* Classify what is at `site` in the bytes of the look. */
enum look_text look_at_site(struct kymo_look *look, const struct probe_site *site);

/*
 * Give the torn sites of the process the file's bytes after what is not kymo's, and take jumps out that rely on them.
 * The process is stopped for this and resumed if it ran. BUSY: it has another tracer, nothing was done.
 */
struct kymo_error *look_mend(struct kymo_look *look, uint64_t *stopped_ns_ret);

#endif
