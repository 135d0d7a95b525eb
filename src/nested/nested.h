/* Tracers inside of the tree that a hub traces. */
#ifndef KYMO_NESTED_NESTED_H
#define KYMO_NESTED_NESTED_H

#include "kymo/engine.h"

struct kymo_inner;

/*
 * A layer that makes ptrace() and wait() work for the threads that a hub traces, toward each other
 * (docs/internals/nested.md). A thread that is followed has to be followed here before any other engine of its is
 * attached, in kymo_hub_run(); what it makes is followed by itself. Negative errno values as of kymo_engine_attach().
 * Callbacks may use it until the hub is destroyed: before that it is stopped, and behind that destroyed. NULL is
 * allowed for both.
 */
int kymo_inner_create(struct kymo_hub *hub, struct kymo_inner **ret);
int kymo_inner_follow(struct kymo_inner *inner, pid_t tid, pid_t pid);
void kymo_inner_pick(
	uint64_t *calls); /* add what it has to be told of, where a command is launched with picked calls */
void kymo_inner_stop(struct kymo_inner *inner);
void kymo_inner_destroy(struct kymo_inner *inner);

#endif
