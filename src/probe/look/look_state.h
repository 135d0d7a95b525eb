/* What a look is made of: look.c takes it, look_text.c has its bytes, mend.c changes text. Private to the room. */
#ifndef KYMO_PROBE_LOOK_LOOK_STATE_H
#define KYMO_PROBE_LOOK_LOOK_STATE_H

#include <stdint.h>

#include "base/vec.h"

struct kymo_gap;
struct kymo_probes;
struct kymo_process;

/* A site that has been seen in. */
struct look_site {
	uint64_t address;
	bool is_out;
	bool is_file; /* it is out, and the text is the file's: it can be put in again */
	size_t gap;   /* that it is of, when it is out */
};

/* Bytes of sites on one page. */
struct look_stretch {
	uint64_t address;
	size_t size, at; /* at: in `seen` and `now` */
	bool is_unread;  /* what stands there means nothing */
};

struct kymo_look {
	struct kymo_probes *probes;
	struct kymo_process *process;
	uint64_t changes; /* of the probes', for which `stretches` are; 0: none */
	KYMO_VEC(struct look_stretch) stretches;
	uint8_t *seen, *now;
	size_t size;                      /* of each */
	bool is_seen;                     /* `seen` is what was there at the last look, and nothing was to be done */
	KYMO_VEC(struct look_site) sites; /* sorted by address */
	KYMO_VEC(struct kymo_gap) gaps;
	uint64_t last_tsc; /* of the last look */
	uint64_t again_ns; /* not put in again before that */
	uint64_t pause_ns; /* before the next time */
};

#endif
