/* What the recorder asks the kernel for itself. Private to the room. */
#ifndef KYMO_RECORD_RECORDER_H
#define KYMO_RECORD_RECORDER_H

/* Each process takes a few descriptors, and they are the recorder's own: a launched process has its limit already. */
void recorder_raise_limit(void);

/*
 * On a busy machine a recorder that gets its turn late loses records; it sleeps when there is nothing to write. A
 * thread that asks for short slices gets its turn at once when it wakes (Linux 6.12; a kernel before that looks at no
 * slices). Both may be refused.
 */
void recorder_hurry(void);

#endif
