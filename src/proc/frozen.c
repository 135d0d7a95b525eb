/*
 * Stopping a process by the hub of this thread, letting it run, letting it go: a process of a tree, or one that is not
 * traced otherwise. It is frozen as by a client of a hub (hub/freeze/freeze.c, joined.c), but the hub is that of this
 * process, so messages are calls. While a client has a process of the tree frozen, requests from here wait.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/error.h"
#include "base/io.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/hub.h"
#include "kymo/engine.h"
#include "proc/follow.h"
#include "proc/joined.h"
#include "proc/frozen.h"
#include "proc/members.h"
#include "proc/nap.h"
#include "proc/state.h"
#include "procfs/info.h"

#define RELEASE_TIMEOUT_NS 10000000000ull
#define END_TIMEOUT_NS 2000000000ull
#define TURN_TIMEOUT_NS \
	(2 * KYMO_ANSWER_MS * 1000000ull) /* a client that says nothing for half of that has lost its freeze \
					   */
#define LEAVE_TIMEOUT_NS 100000000ull     /* without any thread leaving */
#define LEAVE_MOST_NS 5000000000ull

/* ---- a process that is not traced ------------------------------------------------------------ */

struct kymo_error *kymo_frozen_take(struct kymo_process *process, pid_t second)
{
	struct kymo_error *error;

	/* A seized thread has to be stopped to be detached, which its calls may see. So this is not done at each
	 * try. */
	if (process->busy_thread && kymo_other_tracer(process->busy_thread))
		return kymo_not_seized(process->pid, -EBUSY);
	if (!process->owner)
		process->owner = hub_owner_create();
	if (!process->owner)
		return &kymo_error_no_memory;
	process->owner->takes = true;
	error = kymo_joined_freeze(process, second, &process->busy_thread);
	if (error)
		kymo_frozen_leave(process);
	return error;
}

void kymo_frozen_leave(struct kymo_process *process)
{
	uint64_t now = kymo_now_ns(), deadline = now + LEAVE_TIMEOUT_NS, latest = now + LEAVE_MOST_NS;
	unsigned int spins = 0;
	int n, before = 0;

	if (process->joined)
		kymo_joined_resume(process);
	while (process->owner && (n = hub_freeze_hurry(process->owner)) && now < deadline && now < latest) {
		if (n < before) {
			deadline = now + LEAVE_TIMEOUT_NS;
			spins = 0;
		}
		before = n;
		hub_freeze_serve(process->owner); /* that there was something to do says nothing: they were hurried */
		kymo_back_off(spins++);
		now = kymo_now_ns();
	}
}

void kymo_frozen_serve(struct kymo_process *process)
{
	if (process->owner)
		hub_freeze_serve(process->owner);
}

/* ---- at the tree ----------------------------------------------------------------------------- */

/* Also of threads that were made without an event (CLONE_UNTRACED), and were found only now. */
void kymo_frozen_engines(struct kymo_process *process)
{
	for (size_t i = 0; i < process->threads.n; i++)
		kymo_follow_thread(process->tree, process->threads.items[i].tid);
	if (process->state != PROCESS_PAST)
		kymo_process_set_state(process, PROCESS_COMPLETE);
}

static bool is_past(const struct kymo_process *process)
{
	return process->state == PROCESS_PAST;
}

/* All of its threads are ending: from now on no caller is to find it alive. */
static void wait_for_end(const struct kymo_process *process)
{
	kymo_process_wait_until(process, is_past, END_TIMEOUT_NS);
}

static bool has_turn(const struct kymo_process *process)
{
	return process->state == PROCESS_PAST || hub_freeze_request(process->owner) <= 0;
}

void kymo_frozen_look(struct kymo_process *process)
{
	if (process->state != PROCESS_PAST && !hub_freeze_count_living(process->owner))
		wait_for_end(process);
}

struct kymo_error *kymo_frozen_stop(struct kymo_process *process)
{
	struct kymo_error *error = NULL;

	if (process->remote.active || process->state == PROCESS_COMPLETE)
		return NULL;
	kymo_process_wait_until(process, has_turn, TURN_TIMEOUT_NS);
	if (process->state != PROCESS_PAST)
		error = kymo_joined_freeze(process, 0, NULL);
	if (error && error->code == KYMO_ERROR_GONE)
		wait_for_end(process);
	if (process->state == PROCESS_PAST) {
		kymo_error_destroy(error);
		error = kymo_error_create(KYMO_ERROR_GONE, "process %d has ended, or has become another program",
					  process->pid);
	}
	if (error)
		kymo_frozen_resume(process);
	else
		kymo_frozen_engines(process);
	return error;
}

void kymo_frozen_run(struct kymo_process *process)
{
	process->startup.is_fresh = false;
	if (process->joined)
		kymo_joined_resume(process);
	else
		hub_freeze_drop(process->owner); /* it may be requested */
}

void kymo_frozen_resume(struct kymo_process *process)
{
	if (process->birth.is_held)
		return;
	kymo_follow_start_is_over(process);
	kymo_frozen_run(process);
}

static bool is_left(const struct kymo_process *process)
{
	return !hub_freeze_count_left(process->owner);
}

void kymo_frozen_release(struct kymo_process *process)
{
	struct kymo_tree *tree = process->tree;

	if (process->startup.stub != STUB_IS_OUT && process->state != PROCESS_PAST)
		kymo_error_destroy(kymo_frozen_stop(process)); /* which takes it out */
	hub_freeze_leave(process->owner);
	process->birth.is_held = false;
	kymo_frozen_resume(process);
	if (process->state != PROCESS_PAST)
		kymo_process_wait_until(
			process, is_left,
			tree->is_alone ? LEAVE_TIMEOUT_NS
				       : RELEASE_TIMEOUT_NS); /* a thread that does not stop in this time stays the
								 hub's; the kernel detaches it when this process ends */
	kymo_tree_forget(tree, process);
	process->tree = NULL;
	process->was_born_here = false;
	if (tree->is_alone) {
		kymo_tree_free(tree);
		kymo_frozen_leave(process);
	}
}
