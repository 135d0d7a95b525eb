/* The states of a thread of a hub and of its stops, which are set here alone. */
#ifndef KYMO_HUB_THREAD_STATES_H
#define KYMO_HUB_THREAD_STATES_H

#include "hub/thread/task.h"

/* It has come to another stop. */
void hub_set_stop(struct task *task, enum task_stop stop);

/* The stop that it stands in is, or has become, that one. */
void hub_change_stop(struct task *task, enum task_stop stop);

/* It stands no longer: RUNNING, LISTENING, or ENDING. */
void hub_set_state(struct task *task, enum task_state state);

#endif
