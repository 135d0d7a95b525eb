/* What may follow what. docs/internals/nested.md has why. */
#include "nested/states.h"

#include "base/cleanup.h"
#include "base/states.h"

static const struct kymo_state_row states[] = {
	[INNER_GOES] = { "goes", KYMO_STATE(INNER_GOES) | KYMO_STATE(INNER_UNTOLD) | KYMO_STATE(INNER_DEAD) },
	[INNER_UNTOLD] = { "stopped", KYMO_STATE(INNER_GOES) | KYMO_STATE(INNER_UNTOLD) | KYMO_STATE(INNER_TOLD) |
					      KYMO_STATE(INNER_DEAD) },
	[INNER_TOLD] = { "stopped and told",
			 KYMO_STATE(INNER_GOES) | KYMO_STATE(INNER_UNTOLD) | KYMO_STATE(INNER_DEAD) },
	[INNER_DEAD] = { "dead", 0 },
};

void inner_set_state(struct inner_thread *thread, enum inner_state state)
{
	kymo_state_check("thread of the tree", states, kymo_countof(states), thread->state, state);
	thread->state = state;
}
