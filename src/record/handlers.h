/* Processes that come to handle faults, or whose stacks grow. Private to the room. */
#ifndef KYMO_RECORD_HANDLERS_H
#define KYMO_RECORD_HANDLERS_H

struct recording;

/* A program that handles faults must find their instructions at their original addresses. One that overflows its stack
 * must find only what it did itself. */
void recording_look_at_faults(struct recording *recording);

#endif
