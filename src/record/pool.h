/* What a flight recorder keeps of the sources outside of the process. Private to the room. */
#ifndef KYMO_RECORD_POOL_H
#define KYMO_RECORD_POOL_H

#include "base/error.h"

struct recording;

/* With `keep`, before such a source is opened: the memory that its streams share. NO_MEMORY. */
struct kymo_error *recording_make_pool(struct recording *recording);

#endif
