/* Which process records another one. */
#ifndef KYMO_PROBE_MEMORY_RECORDERS_H
#define KYMO_PROBE_MEMORY_RECORDERS_H

#include "probe/memory/sessions.h"

/* Not known: the recorder is in a PID namespace whose processes are not seen from here. A target in a container may be
 * recorded from its host. */
#define KYMO_RECORDER_ELSEWHERE (-1)

/* The recorder of one of process `pid`'s recordings, if it is alive and records that process; else 0, or
 * KYMO_RECORDER_ELSEWHERE. It may be in another PID namespace. */
pid_t kymo_session_recorder(const struct kymo_session *session, pid_t pid);

/* Whether there is one, or may be one elsewhere. */
bool kymo_session_has_recorder(const struct kymo_session *session, pid_t pid);

/* Whether that `recorder` is one is known from what it has mapped, and not from the header alone. */
bool kymo_session_knows_recorder(const struct kymo_session *session, pid_t recorder);

#endif
