/*
 * The hub's thread: waits for threads that are traced, and does what other threads ask for. docs/internals/engines.md
 * tells what stops mean.
 *
 * The lock. The hub's thread holds it but while it waits and while it calls callbacks. So whatever others do under the
 * lock happens between two events, or within a callback.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/vec.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/release.h"
#include "hub/remote/ops.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/request.h"
#include "hub/thread/seize.h"
#include "hub/thread/task.h"
#include "hub/trap/space.h"
#include "hub/wait.h"
#include "kymo/engine.h"

#define RELEASE_MS 2000
#define RELEASE_HERE_MS 100 /* who leaves late has been waited for (keep.c) */

/* ---- what others want ------------------------------------------------------------------------ */

struct visit {
	void (*run)(void *data);
	void *data;
};

static int visit(struct kymo_hub *hub, void *argument)
{
	const struct visit *visit = argument;

	hub_seizing_begins(&hub->seizer); /* once for all threads that it attaches to */
	pthread_mutex_unlock(&hub->lock);
	visit->run(visit->data);
	pthread_mutex_lock(&hub->lock);
	hub_seizing_ends(&hub->seizer);
	return 0;
}

void kymo_hub_run(struct kymo_hub *hub, void (*run)(void *data), void *data)
{
	struct visit argument = { run, data };

	if (hub->remote)
		run(data);
	else
		hub_call(hub, visit, &argument);
}

static void serve(struct kymo_hub *hub)
{
	hub->depth++;
	while (hub->first) {
		struct hub_request *request = hub->first;

		hub->first = request->next;
		if (!hub->first)
			hub->last = NULL;
		request->result = request->run(hub, request->argument);
		request->is_done = true;
		pthread_cond_broadcast(&hub->changed);
	}
	while (hub->kicked.n) {
		struct task *task = hub->kicked.items[--hub->kicked.n];

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

		serve(hub);
		if (hub->is_ending && !hub->first)
			return;
		hub_look_at_clock(hub, is_idle);
		if (hub->kicked.n || hub->first)
			continue;
		tid = hub_wait(hub, true, &status);
		is_idle = tid <= 0;
		if (tid > 0)
			hub_deal(hub, tid, status);
		pthread_cond_broadcast(&hub->changed);
	}
}

static void *be_hub(void *data)
{
	struct kymo_hub *hub = data;

	pthread_mutex_lock(&hub->lock);
	hub->thread = pthread_self();
	hub->tid = gettid();
	hub->failure = hub_waker_create(hub);
	hub->has_started = true;
	pthread_cond_broadcast(&hub->changed);
	if (!hub->failure)
		loop(hub);
	hub_release_all(hub, RELEASE_MS);
	hub_waker_destroy(hub);
	pthread_mutex_unlock(&hub->lock);
	return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Of this thread: two would take each other's stops. */
static _Thread_local struct kymo_hub *hub_here;

/* Hubs share one SIGCHLD action. */
static pthread_mutex_t action_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_hubs;
static bool has_set_action;

/* A stop of each traced thread would wake somebody up. */
static void take_action(void)
{
	struct sigaction action;

	pthread_mutex_lock(&action_lock);
	if (!n_hubs++ && !sigaction(SIGCHLD, NULL, &action) && action.sa_handler == SIG_DFL &&
	    !(action.sa_flags & SA_NOCLDSTOP)) {
		action.sa_flags |= SA_NOCLDSTOP;
		has_set_action = !sigaction(SIGCHLD, &action, NULL);
	}
	pthread_mutex_unlock(&action_lock);
}

static void give_action_back(void)
{
	struct sigaction action;

	pthread_mutex_lock(&action_lock);
	if (!--n_hubs && has_set_action) {
		has_set_action = false;
		if (!sigaction(SIGCHLD, NULL, &action) && action.sa_handler == SIG_DFL &&
		    action.sa_flags & SA_NOCLDSTOP) {
			action.sa_flags &= ~SA_NOCLDSTOP;
			sigaction(SIGCHLD, &action, NULL);
		}
	}
	pthread_mutex_unlock(&action_lock);
}

static void deinit(struct kymo_hub *hub)
{
	if (!hub->is_here)
		give_action_back();
	hub_space_look_at_clock(hub, UINT64_MAX);
	hub_seizer_deinit(&hub->seizer);
	kymo_vec_deinit(&hub->kicked);
	kymo_vec_deinit(&hub->early);
	kymo_vec_deinit(&hub->expected);
	kymo_vec_deinit(&hub->strangers);
	kymo_vec_deinit(&hub->dropped);
	pthread_cond_destroy(&hub->changed);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

static struct kymo_hub *allocate(void)
{
	struct kymo_hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return NULL;
	hub->keeper_pidfd = -1;
	pthread_mutex_init(&hub->lock, NULL);
	pthread_cond_init(&hub->changed, NULL);
	return hub;
}

int kymo_hub_create(struct kymo_hub **ret)
{
	struct kymo_hub *hub = allocate();
	sigset_t all, mask;
	int err;

	if (!hub)
		return -ENOMEM;
	take_action();
	sigfillset(&all);
	pthread_mutex_lock(&hub->lock);
	pthread_sigmask(SIG_SETMASK, &all, &mask); /* handlers of the program's run on its own threads */
	err = -pthread_create(&hub->thread, NULL, be_hub, hub);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	while (!err && !hub->has_started)
		pthread_cond_wait(&hub->changed, &hub->lock);
	pthread_mutex_unlock(&hub->lock);
	if (!err && hub->failure) {
		pthread_join(hub->thread, NULL);
		err = hub->failure;
	}
	if (err) {
		deinit(hub);
		return err;
	}
	*ret = hub;
	return 0;
}

void kymo_hub_destroy(struct kymo_hub *hub)
{
	if (!hub)
		return;
	if (hub->remote) {
		hub->remote->destroy(hub);
		return;
	}
	if (hub->is_here && --hub->n_users)
		return;
	if (hub == hub_here)
		hub_here = NULL;
	if (hub->door)
		hub->door_ops->close(hub->door);
	pthread_mutex_lock(&hub->lock);
	hub->is_ending = true;
	if (hub->is_here)
		hub_release_all(hub, hub->waits_for_any ? RELEASE_MS : RELEASE_HERE_MS);
	else
		hub_wake(hub);
	pthread_mutex_unlock(&hub->lock);
	if (!hub->is_here)
		pthread_join(hub->thread, NULL);
	if (hub->door)
		hub->door_ops->destroy(hub->door);
	deinit(hub);
}

/* ---- on the caller's thread ------------------------------------------------------------------ */

int hub_create_here(struct kymo_hub **ret)
{
	struct kymo_hub *hub = hub_here;

	if (hub && hub->tid == gettid()) { /* else it is that of who has forked us */
		hub->n_users++;
		*ret = hub;
		return 0;
	}
	hub = allocate();
	if (!hub)
		return -ENOMEM;
	hub->is_here = true;
	hub->n_users = 1;
	hub->thread = pthread_self();
	hub->tid = gettid();
	*ret = hub_here = hub;
	return 0;
}

bool hub_pump(struct kymo_hub *hub)
{
	bool has_any, is_idle;

	pthread_mutex_lock(&hub->lock);
	hub->is_woken = false;
	has_any = hub->first || hub->kicked.n;
	serve(hub);
	is_idle = !hub_deal_with_next(hub);
	hub_look_at_clock(hub, is_idle);
	serve(hub);
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
		serve(hub);
	pthread_mutex_unlock(&hub->lock);
}
