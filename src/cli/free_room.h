/*
 * A room for kymo_plan() as it would be if the module stood alone in its process: all within reach is free but itself.
 */
#ifndef KYMO_CLI_FREE_ROOM_H
#define KYMO_CLI_FREE_ROOM_H

#include <stdint.h>

#include "arch/plan.h"

struct kymo_module;

struct cli_free_room {
	struct kymo_plan_room ops;      /* for kymo_plan() */
	int64_t low, high;              /* of the module, whole pages */
	int64_t lowest;                 /* lower addresses are not available */
	uint64_t taken[KYMO_PLANS_MAX]; /* 0: none */
};

/* One room is good for one site. */
void cli_free_room_init(struct cli_free_room *room, const struct kymo_module *module);

/* The same for memory at [low, high), whole pages, of a process. */
void cli_free_room_init_at(struct cli_free_room *room, uint64_t low, uint64_t high);

#endif
