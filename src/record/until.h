/* The end of a recording by a condition. Private to the room. */
#ifndef KYMO_RECORD_UNTIL_H
#define KYMO_RECORD_UNTIL_H

struct recording;

/* A condition that has held since the last call is told of. A snapshot is taken, or the recording is over, when the
 * time after it is up. */
void recording_heed_conditions(struct recording *recording);

/* At the end: a warning where there were conditions, and none has held. */
void recording_tell_conditions(struct recording *recording);

#endif
