/* Processes that execute something while they are seized. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_REPLACED_H
#define KYMO_HUB_THREAD_REPLACED_H

#include "kymo/engine.h"

struct task;

/* Those of its threads that are the hub's, and are about to end, as an exec of another one waits for that. Ends are
 * kept, to be dispatched in their turn. */
void hub_let_end(struct kymo_hub *hub, pid_t pid);

/* What has waited for an exec has seized the one that made it, by its former id: it is the process' first thread now,
 * which is let go, as if it had not been seized. */
void hub_let_go_of_renamed(struct kymo_hub *hub, pid_t pid);

/* Whether one that was not the hub's has executed something, and has the place of the first thread, which was: whose
 * end is kept then. */
bool hub_was_replaced(struct kymo_hub *hub, pid_t pid);

#endif
