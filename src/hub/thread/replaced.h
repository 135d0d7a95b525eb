/* Processes that execute something while they are seized. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_REPLACED_H
#define KYMO_HUB_THREAD_REPLACED_H

#include "kymo/engine.h"

struct task;

/* Let the process' threads end that are the hub's, and for which an exec of another thread waits. Ends are
 * kept, to be dispatched in their turn. */
void hub_let_end(struct kymo_hub *hub, pid_t pid);

/* A wait for an exec has seized the thread that made the exec, by its former id. That thread has the id of its process
 * now. It is detached, as if it had not been seized. */
void hub_let_go_of_renamed(struct kymo_hub *hub, pid_t pid);

/* Whether a thread that was not the hub's has executed a program, and so has replaced the first thread, which was the
 * hub's. Then the first thread's end is kept. */
bool hub_was_replaced(struct kymo_hub *hub, pid_t pid);

#endif
