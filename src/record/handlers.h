/* Processes that come to handle faults, or whose stacks grow. Private to the room. */
#ifndef KYMO_RECORD_HANDLERS_H
#define KYMO_RECORD_HANDLERS_H

struct recording;

/* A program that has come to handle faults must find their instructions in their places, and one that overflows its
 * stack what it has done itself. */
void recording_look_at_faults(struct recording *recording);

#endif
