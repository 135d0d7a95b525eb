/*
 * Processes that are frozen by an owner: a client that is connected, or a part of the hub's own process.
 * docs/internals/engines.md has the rules, proc/joined.c the client's side.
 *
 * A request to freeze is a flag of each thread. The thread is stopped in a PTRACE_EVENT_STOP and in no other stop. So
 * engines are told of all other stops as always, and the thread leaves those with an interrupt on its way.
 *
 * The freeze of a process ends with the connection. So a client that dies leaves no process frozen.
 */
#include <errno.h>
#include <poll.h>

#include "base/io.h"
#include "base/vec.h"
#include "hub/doze.h"
#include "hub/engine.h"
#include "hub/freeze/freeze.h"
#include "hub/hub.h"
#include "hub/remote/message.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/wait.h"

#define OTHERS_NS (2 * HUB_ANSWER_MS * 1000000ull)
#define LOOK_NS 50000000 /* how often it is looked whether the owner is there */
#define SPINS 8

int hub_freeze_ask(int (*function)(struct kymo_hub *hub, void *argument), struct hub_owner *owner,
		   struct hub_message *message, uint8_t *memory)
{
	struct freeze_job job = { .owner = owner, .message = message, .memory = memory };

	return hub_call(owner->hub, function, &job);
}

bool hub_freeze_is_in_callback(const struct hub_owner *owner)
{
	return hub_is_own_thread(owner->hub) && owner->requests >= 0;
}

/* It won't run any more in its program. */
bool hub_freeze_is_past(const struct task *task)
{
	return task->state == TASK_ENDING || task->end.was_told ||
	       (task->state == TASK_STOPPED && task->stop == STOP_ENDING);
}

struct task *hub_frozen_task(struct kymo_hub *hub, const struct freeze_job *job)
{
	struct hub_process *process = hub_frozen_process(hub, job->owner);
	struct task *task = process ? hub_find(hub, job->message->tid) : NULL;

	return task && task->process == process && hub_is_still(task) ? task : NULL;
}

/* ---- waiting, on the owner's thread --------------------------------------------------------- */

/* It has asked, and waits for the reply: whatever comes from it is its end. */
static bool is_there(const struct hub_owner *owner)
{
	struct pollfd look = { .fd = owner->requests, .events = POLLIN };

	return poll(&look, 1, 0) == 0;
}

/* The first one that is not. */
bool hub_freeze_are_all_still(const struct hub_owner *owner, struct hub_message *message)
{
	const struct hub_process *process = hub_frozen_process(owner->hub, owner);

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process) {
		if (!task->must_freeze || hub_is_still(task) || hub_freeze_is_past(task))
			continue;
		message->tid = task->tid;
		return false;
	}
	return true;
}

/* Look at the threads that are to stop, each by its id: a wait for any thread makes the kernel look at all threads, and
 * each stops once or twice. The first that was interrupted is the first that is looked at. */
static int sweep(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	const struct hub_process *process = hub_frozen_process(hub, job->owner);
	KYMO_VEC(pid_t) tids = { 0 };
	int n = 0;

	hub_wait_for_spared(hub);
	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		if (task->must_freeze && !hub_is_still(task) && !hub_freeze_is_past(task) &&
		    (!task->birth.has_maker || task->birth.is_newborn))
			kymo_vec_push(&tids, task->tid);
	for (size_t i = tids.n; i-- > 0 && !hub->statuses.early.n;) {
		int status;

		if (!hub_look(hub, tids.items[i], &status)) {
			if (job->is_patient)
				break; /* the others come later still, and need the processor more than we */
			continue;
		}
		hub_dispatch(hub, tids.items[i], status); /* gives the lock up for callbacks */
		hub_wait_for_spared(hub);
		n++;
	}
	kymo_vec_deinit(&tids);
	return n;
}

/* The same for the one thread that makes a call. */
static int look_at_one(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	int status;

	hub_wait_for_spared(hub);
	if (hub->statuses.early.n || !hub_look(hub, job->message->tid, &status))
		return 0;
	hub_dispatch(hub, job->message->tid, status);
	hub_wait_for_spared(hub);
	return 1;
}

/*
 * What the waiting thread has to do for the freeze. It looks at the threads of the process. If it is the hub's thread,
 * it looks at all other threads, too, as a thread that is waited for may be one of them. In a tree the other threads
 * get their turn in any case, except for stops at system calls, which take two turns. Elsewhere they get it when
 * nothing has come for some `spins`.
 */
static bool help(struct hub_owner *owner, bool (*is_done)(const struct hub_owner *owner, struct hub_message *message),
		 struct hub_message *message, unsigned int spins)
{
	struct freeze_job job = { .owner = owner, .message = message, .is_patient = owner->takes && spins < SPINS };
	bool is_here = hub_is_own_thread(owner->hub), has_happened = false;

	if (is_done == hub_freeze_are_all_still)
		has_happened = hub_call(owner->hub, sweep, &job);
	else if (is_here)
		has_happened = hub_call(owner->hub, look_at_one, &job);
	if (is_here)
		hub_flush(owner->hub);
	if (!is_here || (has_happened && is_done != hub_freeze_are_all_still) ||
	    (!owner->hub->waits_for_any && (has_happened || spins < SPINS)))
		return has_happened;
	return hub_pump(owner->hub) || has_happened;
}

bool hub_freeze_is_done(const struct hub_owner *owner,
			bool (*is_done)(const struct hub_owner *owner, struct hub_message *message),
			struct hub_message *message)
{
	bool done;

	pthread_mutex_lock(&owner->hub->lock);
	done = is_done(owner, message);
	pthread_mutex_unlock(&owner->hub->lock);
	return done;
}

int hub_freeze_wait(struct hub_owner *owner,
		    bool (*is_done)(const struct hub_owner *owner, struct hub_message *message),
		    struct hub_message *message, uint64_t timeout_ns)
{
	uint64_t now = kymo_now_ns(), deadline_ns = now + timeout_ns, latest_ns = deadline_ns + OTHERS_NS,
		 look_ns = now + LOOK_NS;
	pid_t awaited = message->tid;
	bool is_of_call = is_done != hub_freeze_are_all_still && hub_gets_signals(owner->hub), has_happened = false;

	for (unsigned int spins = 0; !hub_freeze_is_done(owner, is_done, message);) {
		uint64_t before_ns = now;

		/* At first for the thread that has just been let go; after another thread's stop for any. */
		if (is_of_call)
			hub_doze(owner->hub, has_happened ? 0 : message->tid, spins);
		has_happened = help(owner, is_done, message, spins);
		if (!has_happened && !is_of_call)
			hub_doze(owner->hub, 0, spins);
		spins = has_happened ? 0 : spins + 1;
		if (owner->takes && message->tid != awaited) { /* each gets that time, as there may be thousands */
			awaited = message->tid;
			deadline_ns = now + timeout_ns;
			latest_ns = deadline_ns + OTHERS_NS;
		}
		now = kymo_now_ns();
		if (now - before_ns >
		    LOOK_NS) /* a client was told something, and did not answer: that is not the process' time */
			deadline_ns =
				deadline_ns + now - before_ns < latest_ns ? deadline_ns + now - before_ns : latest_ns;
		if (now > deadline_ns && !hub_freeze_is_done(owner, is_done, message))
			return -ETIMEDOUT;
		if (now < look_ns)
			continue;
		if (!is_there(owner))
			return -EPIPE;
		look_ns = now + LOOK_NS;
	}
	return 0;
}

bool hub_freeze_is_plain(struct hub_owner *owner)
{
	const struct hub_process *process;
	bool is_plain;

	pthread_mutex_lock(&owner->hub->lock);
	process = hub_frozen_process(owner->hub, owner);
	is_plain = process && !process->space;
	pthread_mutex_unlock(&owner->hub->lock);
	return is_plain;
}

static int drop_owner(struct kymo_hub *hub, void *argument)
{
	hub_freeze_end(hub, argument);
	return 0;
}

void hub_freeze_drop(struct hub_owner *owner)
{
	hub_call(owner->hub, drop_owner, owner);
	hub_flush(owner->hub);
}
