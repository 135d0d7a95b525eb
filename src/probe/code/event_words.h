/* The words func and probe in the expressions of a spec: each of its events has its own. Private to the room. */
#ifndef KYMO_PROBE_CODE_EVENT_WORDS_H
#define KYMO_PROBE_CODE_EVENT_WORDS_H

#include "base/error.h"

struct kymo_probe_event;

/* Give `copy`, which is as `event` but for its strings, forms of its own: in place of those that have such words, and
 * of those that are the event's own. They belong to the copy, also with an error. NO_MEMORY. */
struct kymo_error *probe_event_own_forms(const struct kymo_probe_event *event, struct kymo_probe_event *copy);

#endif
