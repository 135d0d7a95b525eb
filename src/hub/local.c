/*
 * A hub that traces by itself: its beginning and its end, and its table of calls (ops.h). The files of the calls
 * use hub.c, and this file uses them all.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/vec.h"
#include "hub/attach.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/launch.h"
#include "hub/list.h"
#include "hub/local.h"
#include "hub/look.h"
#include "hub/ops.h"
#include "hub/release.h"
#include "hub/signal.h"
#include "hub/regset.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "hub/thread/seize.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/space.h"
#include "hub/trap/watch.h"
#include "kymo/engine.h"

#define RELEASE_HERE_MS 100 /* threads that leave late have been waited for (proc/frozen.c) */

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Of this thread: two would take each other's stops. */
static _Thread_local struct kymo_hub *hub_here;

/* Hubs share one SIGCHLD action. */
static pthread_mutex_t action_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_hubs;
static bool has_set_action;

/* Each stop of a traced thread would wake a waiting thread. */
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

static void deinit_local(struct kymo_hub *hub)
{
	if (!hub->is_here)
		give_action_back();
	hub_space_look_at_clock(hub, UINT64_MAX);
	hub_seizer_deinit(&hub->seizer);
	kymo_vec_deinit(&hub->tasks.kicked);
	kymo_vec_deinit(&hub->statuses.early);
	kymo_vec_deinit(&hub->statuses.expected);
	kymo_vec_deinit(&hub->statuses.unclaimed);
	kymo_vec_deinit(&hub->dropped);
	pthread_cond_destroy(&hub->changed);
	pthread_cond_destroy(&hub->sleep.asked);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

static void destroy_local(struct kymo_hub *hub)
{
	if (hub->is_here && --hub->n_users)
		return;
	if (hub == hub_here)
		hub_here = NULL;
	if (hub->door)
		hub->door_ops->close(hub->door);
	pthread_mutex_lock(&hub->lock);
	hub->is_ending = true;
	if (hub->is_here)
		hub_release_all(hub, hub->waits_for_any ? HUB_RELEASE_MS : RELEASE_HERE_MS);
	else
		hub_wake(hub);
	pthread_mutex_unlock(&hub->lock);
	if (!hub->is_here)
		pthread_join(hub->thread, NULL);
	if (hub->door)
		hub->door_ops->destroy(hub->door);
	deinit_local(hub);
}

static int may_serve(const struct kymo_hub *hub)
{
	return hub->door ? -EALREADY : 0;
}

static int failure(const struct kymo_hub *hub)
{
	return 0; /* there is no connection that could end */
}

static const struct hub_ops ops = {
	.attach = hub_local_attach,
	.attach_process = hub_local_attach_process,
	.detach_all = hub_local_detach_all,
	.tid = hub_local_tid,
	.pid = hub_local_pid,
	.set_events = hub_local_set_events,
	.control = hub_local_control,
	.barrier = hub_local_barrier,
	.try_barrier = hub_local_try_barrier,
	.prepare_examine = hub_local_prepare_examine,
	.finish_examine = hub_local_finish_examine,
	.get_registers = hub_local_get_registers,
	.set_registers = hub_local_set_registers,
	.set_syscall = hub_local_set_syscall,
	.set_result = hub_local_set_result,
	.set_signal = hub_local_set_signal,
	.get_xstate = hub_local_get_xstate,
	.set_xstate = hub_local_set_xstate,
	.read = hub_local_read,
	.write = hub_local_write,
	.inject = hub_local_inject,
	.insert_breakpoint = hub_local_insert_breakpoint,
	.remove_breakpoint = hub_local_remove_breakpoint,
	.hit_again = hub_local_hit_again,
	.watch = hub_local_watch,
	.unwatch = hub_local_unwatch,
	.list = hub_local_list,
	.launch = hub_local_launch,
	.start = hub_local_start,
	.wait = hub_local_wait,
	.run = hub_local_run,
	.may_serve = may_serve,
	.leave = hub_local_leave,
	.failure = failure,
	.destroy = destroy_local,
};

static struct kymo_hub *allocate(void)
{
	struct kymo_hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return NULL;
	hub->ops = &ops;
	hub->keeper.pidfd = -1;
	pthread_mutex_init(&hub->lock, NULL);
	pthread_cond_init(&hub->changed, NULL);
	pthread_cond_init(&hub->sleep.asked, NULL);
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
	err = -pthread_create(&hub->thread, NULL, hub_main, hub);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	while (!err && !hub->start.is_done)
		pthread_cond_wait(&hub->changed, &hub->lock);
	pthread_mutex_unlock(&hub->lock);
	if (!err && hub->start.failure) {
		pthread_join(hub->thread, NULL);
		err = hub->start.failure;
	}
	if (err) {
		deinit_local(hub);
		return err;
	}
	*ret = hub;
	return 0;
}

/* ---- on the caller's thread ------------------------------------------------------------------ */

int hub_create_here(struct kymo_hub **ret)
{
	struct kymo_hub *hub = hub_here;

	if (hub && hub->tid == gettid()) { /* else it is the hub of the process that forked this one */
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
