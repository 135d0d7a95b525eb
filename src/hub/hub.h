/* The hub's thread, and how other threads reach it. docs/internals/engines.md has the rules. */
#ifndef KYMO_HUB_HUB_H
#define KYMO_HUB_HUB_H

#include "kymo/engine.h"

struct task;

/* The thread of a hub that has one of its own: executes this with that hub, until hub->is_ending. */
void *hub_main(void *hub);

/* Do what has been asked for, and deal with one change of state of a thread or child. Whether there was anything. Not
 * from a callback. */
bool hub_pump(struct kymo_hub *hub);

/* Do at once what this thread has asked for, if the hub's thread is this one and is not in a callback. */
void hub_flush(struct kymo_hub *hub);

/*
 * Have the hub's thread call `run(data)` as it calls callbacks, and wait for that. To attach to many threads so takes
 * one switch to that thread in place of two each, and no thread goes on before it returns. With a hub of another
 * process, `run` is called on the caller's thread, and each call in it is a message.
 */
void kymo_hub_run(struct kymo_hub *hub, void (*run)(void *data), void *data);

/* The same of a hub that traces by itself: a row of the table in local.c. */
void hub_local_run(struct kymo_hub *hub, void (*run)(void *data), void *data);

#endif
