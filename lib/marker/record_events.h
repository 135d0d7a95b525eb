/*
 * What the trace says of a marker. Private to the library; x86-64 only.
 */
#ifndef KYMO_LIB_RECORD_EVENTS_H
#define KYMO_LIB_RECORD_EVENTS_H

#include "ctf/ctf.h"
#include "markers.h"

/* An event for the trace, on its way to the writer. */
struct record_news {
	struct record_news *next;
	struct kymo_ctf_event event;
};

/*
 * The id of the first location of `marker`; the others follow. What recording number `recording` has not been told of
 * them is put before `*news`. With the lock. -ENOMEM; -ENOSPC: there are too many
 */
int kymo_record_event_ids(const struct lib_marker *marker, uint64_t recording, struct record_news **news,
			  uint32_t *ret);

/* Let go of the file that was looked at last. */
void kymo_record_events_settle(void);

void kymo_record_news_destroy(struct record_news *news);

#endif
