/* Pads whose records have the thread's stack. Include after cmocka.h. */
#ifndef KYMO_TESTS_ARCH_STACK_RECORDS_H
#define KYMO_TESTS_ARCH_STACK_RECORDS_H

#include "last.h"
#include "pad_checks.h"

/* A world with a pad of `event`, whose records are kept in `last`. `stack` is the initial thread's, of STACK_SIZE
 * bytes; NULL: it is not known. */
static inline void begin(struct world *world, struct last *last, enum kind kind, const uint8_t *stack,
			 const struct kymo_pad_event *event, struct site *site)
{
	world_init(world, kind, roomy);
	world->env.stack_low = stack ? (uint64_t)stack : 0;
	world->env.stack_high = stack ? (uint64_t)stack + STACK_SIZE : 0;
	world->on_record = keep;
	world->data = last;
	world->varying[1] = event;
	world_landing(world, event, 1, site);
}

#endif
