/* What a source of records keeps for aggregations. Private to the room. */
#ifndef KYMO_RECORD_SOURCE_HITS_H
#define KYMO_RECORD_SOURCE_HITS_H

#include "record/recording.h"

/* Make source->hits, if it is not there yet. NO_MEMORY, also later, where that has failed. */
struct kymo_error *source_hits_make(const struct recording *recording, struct record_source *source);

/* The source is about to be freed. */
void source_hits_forget(struct recording *recording, struct record_source *source);

#endif
