/*
 * Large files of the recording that a new one removes. To free their blocks takes a second for some gigabytes, and the
 * processes that are to be recorded may have probes already. Held open, files are removed at once; a thread closes
 * them.
 */
#ifndef KYMO_TRACE_HELD_H
#define KYMO_TRACE_HELD_H

struct kymo_held;

/* Open the large files of PATH.old, which stay as they are. NULL: there are none, or they can't be held. */
struct kymo_held *kymo_held_open(const char *path);

/* Close them in a thread of their own, which has all signals blocked; here, where there can't be one. Takes NULL. */
void kymo_held_close(struct kymo_held *held);

#endif
