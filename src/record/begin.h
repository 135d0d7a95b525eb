/* The first process of a recording. Private to the room. */
#ifndef KYMO_RECORD_BEGIN_H
#define KYMO_RECORD_BEGIN_H

#include "base/error.h"

struct recording;

/* The process of the options, with probes in it; it goes on when it is resumed. An error leaves what was done to it so
 * far. */
struct kymo_error *recording_attach(struct recording *recording);

/* The same for the command of the options, up to the first instruction of its own. */
struct kymo_error *recording_launch(struct recording *recording);

#endif
