/* What may follow what. docs/internals/engines.md has the picture, and why. */
#include "hub/thread/states.h"

#include "base/cleanup.h"
#include "base/states.h"

#define ANY_STOP (KYMO_STATE(STOP_TRAP) | KYMO_STATE(STOP_SIGNAL) | KYMO_STATE(STOP_EVENT) | KYMO_STATE(STOP_ENDING))
#define OF_A_CALL (KYMO_STATE(STOP_ENTRY) | KYMO_STATE(STOP_EXIT) | KYMO_STATE(STOP_EVENT))

static const struct kymo_state_row states[] = {
	[TASK_RUNNING] = { "running", KYMO_STATE(TASK_STOPPED) | KYMO_STATE(TASK_ENDING) },
	[TASK_LISTENING] = { "listening", KYMO_STATE(TASK_STOPPED) | KYMO_STATE(TASK_ENDING) },
	/* STOPPED again: the kernel has woken it, to end. */
	[TASK_STOPPED] = { "stopped", KYMO_STATE(TASK_RUNNING) | KYMO_STATE(TASK_LISTENING) | KYMO_STATE(TASK_STOPPED) |
					      KYMO_STATE(TASK_ENDING) },
	[TASK_ENDING] = { "ending", KYMO_STATE(TASK_ENDING) },
};

/* The next one, as the kernel tells it. A new task has TRAP, and a launched one begins at the entry of its execve. */
static const struct kymo_state_row next_stops[] = {
	[STOP_TRAP] = { "trap", ANY_STOP | KYMO_STATE(STOP_ENTRY) },
	[STOP_SIGNAL] = { "signal", ANY_STOP },
	[STOP_ENTRY] = { "entry", ANY_STOP },
	[STOP_EXIT] = { "exit", ANY_STOP },
	[STOP_EVENT] = { "event", ANY_STOP },
	/* Of a command that was killed before its start, which tells its first stop as if it stood there still. */
	[STOP_ENDING] = { "ending", KYMO_STATE(STOP_SIGNAL) },
	[STOP_AWAY] = { "away", ANY_STOP | KYMO_STATE(STOP_AWAY) },
};

/* What the same one turns out to be. */
static const struct kymo_state_row same_stops[] = {
	[STOP_TRAP] = { "trap", KYMO_STATE(STOP_AWAY) },
	[STOP_SIGNAL] = { "signal", OF_A_CALL | KYMO_STATE(STOP_AWAY) },
	[STOP_ENTRY] = { "entry", KYMO_STATE(STOP_AWAY) },
	[STOP_EXIT] = { "exit", 0 },
	[STOP_EVENT] = { "event", OF_A_CALL },
	[STOP_ENDING] = { "ending", 0 },
	[STOP_AWAY] = { "away", KYMO_STATE(STOP_SIGNAL) | KYMO_STATE(STOP_AWAY) },
};

void hub_set_state(struct task *task, enum task_state state)
{
	kymo_state_check("thread of a hub", states, kymo_countof(states), task->state, state);
	task->state = state;
}

void hub_set_stop(struct task *task, enum task_stop stop)
{
	kymo_state_check("next stop of a thread", next_stops, kymo_countof(next_stops), task->stop, stop);
	hub_set_state(task, TASK_STOPPED);
	task->stop = stop;
}

void hub_change_stop(struct task *task, enum task_stop stop)
{
	kymo_state_check("stop of a thread", same_stops, kymo_countof(same_stops), task->stop, stop);
	task->stop = stop;
}
