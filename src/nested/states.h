/* Where a thread of the tree is, as its tracer sees it. */
#ifndef KYMO_NESTED_STATES_H
#define KYMO_NESTED_STATES_H

#include "nested/inner.h"

/* The only function that sets the state. */
void inner_set_state(struct inner_thread *thread, enum inner_state state);

static inline bool inner_is_stopped(const struct inner_thread *thread)
{
	return thread->state == INNER_UNTOLD || thread->state == INNER_TOLD;
}

#endif
