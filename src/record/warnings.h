/* What the user is told. Private to the room. */
#ifndef KYMO_RECORD_WARNINGS_H
#define KYMO_RECORD_WARNINGS_H

#include <stdbool.h>

struct recording;

/* Tell the user; a sentence that differs from an earlier one in numbers only, not again. */
void recording_warn(struct recording *recording, const char *format, ...) __attribute__((format(printf, 2, 3)));
void recording_tell(const char *sentence, void *data); /* the same of a sentence; `data` is the recording */

/* Tell what was held back (`is_holding`), or forget it; nothing is held back from then on. */
void recording_release_warnings(struct recording *recording, bool tell);

#endif
