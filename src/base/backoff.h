/* Waiting for what nothing tells of. */
#ifndef KYMO_BASE_BACKOFF_H
#define KYMO_BASE_BACKOFF_H

/* Wait a moment before the next look: the longer the higher `spins`, which the caller counts. A millisecond at most,
 * and the timer slack. */
void kymo_back_off(unsigned int spins);

#endif
