/* Engines of a hub that traces by itself: their lifetime, and what they ask for. */
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "hub/attach.h"
#include "hub/engine.h"
#include "hub/remote/guest.h"
#include "hub/ops.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/trap/disarm.h"
#include "hub/trap/space.h"
#include "hub/trap/watch.h"
#include "kymo/engine.h"

/* ---- lifetime -------------------------------------------------------------------------------- */

void kymo_engine_get(struct kymo_engine *engine)
{
	atomic_fetch_add(&engine->refs, 1);
}

void kymo_engine_put(struct kymo_engine *engine)
{
	if (!engine || atomic_fetch_sub(&engine->refs, 1) > 1)
		return;
	if (engine->guest)
		engine->guest->hooks->release(engine);
	else if (engine->ops->release)
		engine->ops->release(engine->data);
	kymo_vec_deinit(&engine->breakpoints);
	free(engine);
}

static int drop_engine(struct kymo_hub *hub, void *argument)
{
	hub_drop(hub, argument);
	return 0;
}

void hub_put_later(struct kymo_engine *engine)
{
	unsigned int refs = atomic_load(&engine->refs);

	while (refs > 1)
		if (atomic_compare_exchange_weak(&engine->refs, &refs, refs - 1))
			return;
	hub_call(engine->hub, drop_engine, engine);
}

void hub_bury(struct kymo_hub *hub)
{
	while (hub->dropped.n) {
		struct kymo_engine *engine = hub->dropped.items[--hub->dropped.n];

		pthread_mutex_unlock(&hub->lock);
		kymo_engine_put(engine);
		pthread_mutex_lock(&hub->lock);
	}
}

struct kymo_engine *hub_add_engine(struct kymo_hub *hub, struct task *task, const struct hub_attach *attach)
{
	struct kymo_engine *engine = calloc(1, sizeof(*engine));

	if (!engine || !kymo_vec_push(&task->engines, engine)) {
		free(engine);
		return NULL;
	}
	atomic_init(&engine->refs, 1);
	engine->hub = hub;
	engine->task = task;
	engine->ops = attach->ops;
	engine->data = attach->data;
	engine->may_break = attach->flags & KYMO_ATTACH_BREAKPOINTS;
	engine->ops_key = attach->ops_key;
	engine->data_key = attach->data_key;
	engine->name = attach->name + attach->n;
	engine->events = attach->events;
	engine->wants = KYMO_ACTION_RESUME;
	engine->born = task->is_in_event ? hub->counts.events : 0;
	if (attach->guest)
		attach->guest->hooks->take(attach->guest, engine);
	hub_release_leavers(hub, task);
	hub_kick(hub, task);
	return engine;
}

/* Where it was the last one of a thread that lives, it is not through until that was let go. */
static void take_out_engine(struct kymo_hub *hub, struct task *task, struct kymo_engine *engine, bool is_last)
{
	if (is_last && kymo_vec_push(&task->leavers, engine))
		return;
	engine->task = NULL;
	hub_drop(hub, engine);
}

void hub_purge_engines(struct kymo_hub *hub, struct task *task)
{
	size_t left = 0, n = task->engines.n;
	bool is_last = !task->end.was_told && !hub_space_keeps(task);

	for (size_t i = 0; i < n; i++)
		is_last &= task->engines.items[i]->is_detached;
	for (size_t i = 0; i < n; i++) {
		struct kymo_engine *engine = task->engines.items[i];

		if (engine->is_detached)
			take_out_engine(hub, task, engine, is_last);
		else
			task->engines.items[left++] = engine;
	}
	task->engines.n = left;
}

void hub_detach_engine(struct kymo_hub *hub, struct kymo_engine *engine)
{
	struct task *task = engine->task;

	if (engine->is_detached)
		return;
	engine->is_detached = true;
	engine->has_later = false;
	engine->wants = KYMO_ACTION_RESUME;
	hub_breakpoints_drop(hub, engine);
	hub_watches_drop(engine);
	if (!task->is_in_event)
		hub_purge_engines(hub, task);
	hub_kick(hub, task);
}

/* ---- one engine ------------------------------------------------------------------------------ */

pid_t hub_local_tid(const struct kymo_engine *engine)
{
	pid_t tid;

	pthread_mutex_lock(&engine->hub->lock);
	tid = engine->task && !engine->is_detached ? engine->task->tid : 0;
	pthread_mutex_unlock(&engine->hub->lock);
	return tid;
}

pid_t hub_local_pid(const struct kymo_engine *engine)
{
	pid_t pid;

	pthread_mutex_lock(&engine->hub->lock);
	pid = engine->task && !engine->is_detached ? engine->task->process->pid : 0;
	pthread_mutex_unlock(&engine->hub->lock);
	return pid;
}

static int set_events(struct kymo_engine *engine, unsigned int events)
{
	unsigned int cleared = engine->events & ~events, added = events & ~engine->events;
	const struct task *task = engine->task;

	if (engine->is_detached || !task)
		return -ESRCH;
	if (task->end.was_told && (cleared | added) & KYMO_EVENT_DEATH)
		return -EALREADY;
	if (task->end.is_reaping && cleared & KYMO_EVENT_REAP)
		return -EALREADY;
	engine->events = events;
	hub_kick(engine->hub, engine->task);
	return cleared && engine->is_in_callback && !hub_is_own_thread(engine->hub) ? -EINPROGRESS : 0;
}

int hub_local_set_events(struct kymo_engine *engine, unsigned int events)
{
	int err;

	pthread_mutex_lock(&engine->hub->lock);
	err = set_events(engine, events);
	pthread_mutex_unlock(&engine->hub->lock);
	return err;
}

static int detach(struct kymo_engine *engine)
{
	if (engine->task->end.is_reaping)
		return -EALREADY;
	hub_detach_engine(engine->hub, engine);
	return engine->is_in_callback ? -EINPROGRESS : 0;
}

static bool needs_quiesce(enum kymo_action action)
{
	return action == KYMO_ACTION_REPORT || action == KYMO_ACTION_SINGLESTEP || action == KYMO_ACTION_BLOCKSTEP;
}

static int control(struct kymo_engine *engine, enum kymo_action action)
{
	struct task *task = engine->task;
	bool is_stopped;

	if (engine->is_detached || !task)
		return -ESRCH;
	if (action == KYMO_ACTION_DETACH)
		return detach(engine);
	if (task->end.was_told)
		return -ESRCH;
	if (needs_quiesce(action) && !(engine->events & KYMO_EVENT_QUIESCE))
		return -EINVAL;
	is_stopped = task->state == TASK_STOPPED && !task->is_in_event;
	if (engine->is_in_callback) {
		engine->has_later = true;
		engine->later = action;
	} else {
		engine->wants = action;
	}
	engine->owes_report |= action == KYMO_ACTION_INTERRUPT || action == KYMO_ACTION_REPORT ||
			       (action == KYMO_ACTION_STOP && !is_stopped);
	hub_kick(engine->hub, task);
	return action == KYMO_ACTION_STOP && !is_stopped ? -EINPROGRESS : 0;
}

int hub_local_control(struct kymo_engine *engine, enum kymo_action action)
{
	int err;

	pthread_mutex_lock(&engine->hub->lock);
	err = control(engine, action);
	pthread_mutex_unlock(&engine->hub->lock);
	return err;
}

bool hub_engine_is_through(const struct kymo_engine *engine)
{
	return !engine->is_in_callback && !(engine->is_detached && engine->task);
}

static bool is_past(const struct kymo_engine *engine, uint64_t event)
{
	const struct kymo_hub *hub = engine->hub;

	return hub_is_own_thread(hub) || (hub_engine_is_through(engine) &&
					  !(engine->task && engine->task->is_in_event && hub->counts.events == event));
}

static int result_of_barrier(const struct kymo_engine *engine)
{
	if (engine->is_in_callback)
		return -EDEADLK;
	return engine->is_detached || !engine->task ? -ESRCH : 0;
}

int hub_local_try_barrier(struct kymo_engine *engine, uint64_t *event)
{
	struct kymo_hub *hub = engine->hub;
	int err;

	pthread_mutex_lock(&hub->lock);
	if (!*event)
		*event = hub->counts.events;
	err = is_past(engine, *event) ? result_of_barrier(engine) : -EAGAIN;
	pthread_mutex_unlock(&hub->lock);
	return err;
}

int hub_try_barrier(struct kymo_engine *engine, uint64_t *event)
{
	return engine->hub->ops->try_barrier(engine, event);
}

int hub_local_barrier(struct kymo_engine *engine)
{
	struct kymo_hub *hub = engine->hub;
	uint64_t event;
	int err;

	pthread_mutex_lock(&hub->lock);
	event = hub->counts.events;
	while (!is_past(engine, event))
		pthread_cond_wait(&hub->changed, &hub->lock);
	err = result_of_barrier(engine);
	pthread_mutex_unlock(&hub->lock);
	return err;
}
