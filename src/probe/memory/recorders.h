/* Which process records another one. */
#ifndef KYMO_PROBE_MEMORY_RECORDERS_H
#define KYMO_PROBE_MEMORY_RECORDERS_H

#include "probe/memory/remains.h"

/* Not known: the recorder is in a PID namespace whose processes are not seen from here. A target in a container may be
 * recorded from its host. */
#define KYMO_RECORDER_ELSEWHERE (-1)

/* The recorder of one of process `pid`'s recordings, if it is alive and records that process; else 0, or
 * KYMO_RECORDER_ELSEWHERE. It may be in another PID namespace. */
pid_t kymo_remains_recorder(const struct kymo_remains *remains, pid_t pid);

/* Whether there is one, or may be one elsewhere. */
bool kymo_remains_have_recorder(const struct kymo_remains *remains, pid_t pid);

/* Whether that `recorder` is one is known from what it has mapped, and not from the header alone. */
bool kymo_remains_know_recorder(const struct kymo_remains *remains, pid_t recorder);

#endif
