/* What the user is told. Private to the room. */
#ifndef KYMO_RECORD_WARNINGS_H
#define KYMO_RECORD_WARNINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct recording;

struct recording_warnings {
	KYMO_VEC(uint64_t) told; /* what the user was warned of: many processes have the same to say */
	KYMO_VEC(char *) held;   /* warnings that wait until it is known whether it is done this way */
	bool is_holding;
};

/* Tell the user; a sentence that differs from an earlier one in numbers only, not again. */
void recording_warn(struct recording *recording, const char *format, ...) __attribute__((format(printf, 2, 3)));
void recording_tell(const char *sentence, void *data); /* the same of a sentence; `data` is the recording */

/* Tell what was held back (`is_holding`), or forget it; nothing is held back from then on. */
void recording_release_warnings(struct recording *recording, bool tell);

#endif
