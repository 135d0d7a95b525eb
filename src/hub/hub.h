/* The hub's thread, and how other threads reach it. docs/internals/engines.md has the rules. */
#ifndef KYMO_HUB_HUB_H
#define KYMO_HUB_HUB_H

#include "kymo/engine.h"

struct task;

/* What the thread of a hub executes, if it has one of its own, until hub->is_ending. */
void *hub_main(void *hub);

/* Handle requests, and one change of state of a thread or child. Whether there was anything. Not from a callback. */
bool hub_pump(struct kymo_hub *hub);

/* Handle this thread's requests at once, if it is the hub's thread and not in a callback. */
void hub_flush(struct kymo_hub *hub);

/*
 * Have the hub's thread call `run(data)` as it calls callbacks, and wait for that. Attaching to many threads in this
 * way takes one switch to that thread instead of two each, and no thread goes on before it returns. With a hub of
 * another process, `run` is called on the thread that runs callbacks; from a callback, at once. Each call in it is a
 * message. The hub waits for each one for KYMO_ANSWER_MS, and for a minute in all.
 */
void kymo_hub_run(struct kymo_hub *hub, void (*run)(void *data), void *data);

/* The same for a hub that traces by itself: a row of the table in local.c. */
void hub_local_run(struct kymo_hub *hub, void (*run)(void *data), void *data);

#endif
