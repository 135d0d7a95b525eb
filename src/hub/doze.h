/*
 * Sleeping on the thread of a hub that has no thread of its own, until a stop or a request may have come. This is for
 * waits in the middle of an operation, where hub_pump() is not called. The lock is not held.
 */
#ifndef KYMO_HUB_DOZE_H
#define KYMO_HUB_DOZE_H

#include <sys/types.h>

#include "kymo/engine.h"

/* Whether hub_doze() ends when something comes. */
bool hub_gets_signals(const struct kymo_hub *hub);

/* Until something may have come, for the caller's `spins`th look that found nothing; at the first, of thread `tid` (0:
 * of any). A millisecond or so at most; false where that is over, and nothing has. Of another hub's thread, or where
 * the hub gets no SIGCHLD, as kymo_back_off(). */
bool hub_doze(struct kymo_hub *hub, pid_t tid, unsigned int spins);

/* The thread is about to wait elsewhere. Where hub_doze() took a SIGCHLD since hub_signal_is_dealt_with(), it gets
 * another one. */
void hub_dozes_end(struct kymo_hub *hub);

/* All that has come is looked at from now on. */
void hub_signal_is_dealt_with(struct kymo_hub *hub);

#endif
