/*
 * The hub's thread waits for traced threads, and does what other threads ask for. docs/internals/engines.md tells what
 * stops mean.
 *
 * The lock. The hub's thread holds it except while it waits and while it calls callbacks. So what other threads do
 * under the lock happens between two events, or within a callback.
 */
#include <unistd.h>

#include "base/vec.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/ops.h"
#include "hub/release.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/request.h"
#include "hub/thread/seize.h"
#include "hub/thread/task.h"
#include "hub/wait.h"
#include "kymo/engine.h"

/* ---- what others want ------------------------------------------------------------------------ */

struct visit {
	void (*run)(void *data);
	void *data;
};

static int visit(struct kymo_hub *hub, void *argument)
{
	const struct visit *visit = argument;

	hub_seizing_may_begin(&hub->seizer); /* the timer is set once for all threads that it attaches to */
	pthread_mutex_unlock(&hub->lock);
	visit->run(visit->data);
	pthread_mutex_lock(&hub->lock);
	hub_seizing_is_over(&hub->seizer);
	return 0;
}

void hub_local_run(struct kymo_hub *hub, void (*run)(void *data), void *data)
{
	hub_call(hub, visit, &(struct visit){ run, data });
}

void kymo_hub_run(struct kymo_hub *hub, void (*run)(void *data), void *data)
{
	hub->ops->run(hub, run, data);
}

static void serve_hub(struct kymo_hub *hub)
{
	hub->depth++;
	while (hub->requests.first) {
		struct hub_request *request = hub->requests.first;

		hub->requests.first = request->next;
		if (!hub->requests.first)
			hub->requests.last = NULL;
		request->result = request->run(hub, request->argument);
		hub->sleep.was_asked = true;
		hub_request_done(request, !hub->tasks.kicked.n && !hub->dropped.n);
		pthread_cond_broadcast(&hub->changed);
	}
	while (hub->tasks.kicked.n) {
		struct task *task = hub->tasks.kicked.items[--hub->tasks.kicked.n];

		task->is_kicked = false;
		hub_attend(hub, task);
	}
	hub_bury(hub);
	hub->depth--;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void loop(struct kymo_hub *hub)
{
	bool is_idle = false;

	for (;;) {
		int status;
		pid_t tid;

		serve_hub(hub);
		if (hub->is_ending && !hub->requests.first)
			return;
		hub_look_at_clock(hub, is_idle);
		if (hub->tasks.kicked.n || hub->requests.first)
			continue;
		if (hub_rest(hub))
			continue;
		tid = hub_wait(hub, true, &status);
		is_idle = tid <= 0;
		if (tid > 0)
			hub_deal(hub, tid, status);
		pthread_cond_broadcast(&hub->changed);
	}
}

void *hub_main(void *data)
{
	struct kymo_hub *hub = data;

	pthread_mutex_lock(&hub->lock);
	hub->thread = pthread_self();
	hub->tid = gettid();
	hub->start.failure = hub_waker_create(hub);
	hub->start.is_done = true;
	pthread_cond_broadcast(&hub->changed);
	if (!hub->start.failure)
		loop(hub);
	hub_release_all(hub, HUB_RELEASE_MS);
	hub_waker_destroy(hub);
	pthread_mutex_unlock(&hub->lock);
	return NULL;
}

/* ---- on the caller's thread ------------------------------------------------------------------ */

bool hub_pump(struct kymo_hub *hub)
{
	bool has_any, is_idle;

	pthread_mutex_lock(&hub->lock);
	hub->sleep.is_woken = false;
	has_any = hub->requests.first || hub->tasks.kicked.n;
	serve_hub(hub);
	is_idle = !hub_deal_with_next(hub);
	hub_look_at_clock(hub, is_idle);
	serve_hub(hub);
	pthread_cond_broadcast(&hub->changed);
	pthread_mutex_unlock(&hub->lock);
	return has_any || !is_idle;
}

void hub_flush(struct kymo_hub *hub)
{
	if (!hub->is_here || !hub_is_own_thread(hub))
		return;
	pthread_mutex_lock(&hub->lock);
	if (!hub->depth)
		serve_hub(hub);
	pthread_mutex_unlock(&hub->lock);
}
