/* Snapshots while a recording goes on. Private to the room. */
#ifndef KYMO_RECORD_SNAPSHOT_H
#define KYMO_RECORD_SNAPSHOT_H

struct recording;

/* Take a snapshot. That there is one, or why not, is told. */
void recording_take_snapshot(struct recording *recording);

/* The same if one was asked for since the last time. */
void recording_snapshot(struct recording *recording);

#endif
