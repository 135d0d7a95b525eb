/* The hub's thread, and how other threads reach it. docs/internals/engines.md has the rules. */
#ifndef KYMO_HUB_HUB_H
#define KYMO_HUB_HUB_H

#include "kymo/engine.h"

struct task;

bool hub_is_own_thread(const struct kymo_hub *hub);

/* Have `run(hub, argument)` executed by the hub's thread with the lock held, and wait for it; from that thread itself:
 * now. What it returns. The lock is not held. */
int hub_call(struct kymo_hub *hub, int (*run)(struct kymo_hub *hub, void *argument), void *argument);

/*
 * The hub whose thread is the caller's: it has none of its own, and nothing happens but in hub_pump(), which the caller
 * comes to whenever a SIGCHLD is pending for it, and every 20 ms. Requests of other threads send it one. A thread has
 * one, for whoever asks: destroyed by the same thread as often as it was created. -ENOMEM.
 */
int hub_create_here(struct kymo_hub **ret);

/* Do what has been asked for, and deal with one change of state of a thread or child. Whether there was anything. Not
 * from a callback. */
bool hub_pump(struct kymo_hub *hub);

/* Do at once what this thread has asked for, if the hub's thread is this one and is not in a callback. */
void hub_flush(struct kymo_hub *hub);

/* Have the thread look at a task soon. Lock held. */
void hub_kick(struct kymo_hub *hub, struct task *task);

/* Put an engine when the lock is not held any more. Lock held. */
void hub_drop(struct kymo_hub *hub, struct kymo_engine *engine);

/* The waker has stopped, as somebody wants something, or was killed. */
void hub_waker_stopped(struct kymo_hub *hub, int status);

/* The lock is released meanwhile; does what hub_drop() has put off. On the hub's thread, lock held. */
void hub_bury(struct kymo_hub *hub);

/*
 * Have `run(data)` executed on the hub's thread, as a callback is, and wait for it: what it attaches to many threads
 * takes one switch to that thread instead of two each, and none of them goes on before it returns. Of another process'
 * hub it runs on the caller's thread, and each call is a message of its own.
 */
void kymo_hub_run(struct kymo_hub *hub, void (*run)(void *data), void *data);

#endif
