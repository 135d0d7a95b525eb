/* The journal, and the process that puts back what a dead hub has left. docs/internals/engines.md has the rules. */
#ifndef KYMO_HUB_TRAP_KEEPER_H
#define KYMO_HUB_TRAP_KEEPER_H

#include <stdbool.h>

#include "kymo/engine.h"

/* Note what is to be put back: the byte at an address of the memory behind descriptor `fd`. An entry; -ENOSPC; -EAGAIN:
 * no keeper could be made. */
int hub_note_byte(struct kymo_hub *hub, int fd, uint64_t address, uint8_t original);

/* Note four bytes that are to be cleared: while they are not 0 a thread comes to a breakpoint instruction elsewhere.
 * The same. */
int hub_note_word(struct kymo_hub *hub, int fd, uint64_t address);

/* Note a thread whose debug registers are to be cleared. The same. */
int hub_note_watches(struct kymo_hub *hub, pid_t tid);

/* Another byte is to be put back. */
void hub_note_change(struct kymo_hub *hub, int entry, uint8_t original);

/* Nothing is to be put back any more. With the last entry the keeper ends. */
void hub_strike(struct kymo_hub *hub, int entry);

/* The keeper has ended; there is another one if it is needed. */
void hub_keeper_ended(struct kymo_hub *hub);

/* Whether one is needed and could not be made; try again. */
bool hub_lacks_keeper(const struct kymo_hub *hub);
void hub_get_keeper(struct kymo_hub *hub);

/* The hub ends. What is still noted, of threads that did not stop, is the keeper's to do. */
void hub_leave_keeper(struct kymo_hub *hub);

#endif
