/*
 * The hub's thread: waits for threads that are traced, and does what other threads ask for. docs/internals/engines.md
 * tells what stops mean.
 *
 * Waiting. Only wait() tells of traced threads, and nothing ends a wait() for all of them but a change of state of one.
 * So the hub's thread has a child of its own that does nothing but be traced, the waker: any signal to it makes it
 * stop, and what is there to be done meanwhile is found by whoever waited. Signal handlers, and a SIGCHLD that the
 * program around us may want for itself, are not needed. The kernel ends the waker when the hub's thread is no more.
 *
 * The lock. The hub's thread holds it but while it waits and while it calls callbacks. So whatever others do under the
 * lock happens between two events, or within a callback.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/release.h"
#include "hub/remote/ops.h"
#include "hub/remote/door.h"
#include "hub/run.h"
#include "hub/seize.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/task.h"
#include "hub/trap/space.h"
#include "hub/wait.h"
#include "kymo/engine.h"

#define RELEASE_MS 2000
#define RELEASE_HERE_MS 100 /* who leaves late has been waited for (keep.c) */

/* ---- the waker
 * ------------------------------------------------------------------------------------------------------- */

static void __attribute__((noreturn)) be_waker(pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "kymo-waker");
	close_range(0, ~0u, 0);
	if (chdir("/") < 0)
		errno = 0; /* then its file system stays busy */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (;;)
		pause();
}

/* A negative errno. */
static int make_waker(struct kymo_hub *hub)
{
	pid_t parent = getpid(), pid = _Fork();
	int err;

	if (!pid)
		be_waker(parent);
	if (pid < 0)
		return -errno;
	if (!ptrace(PTRACE_SEIZE, pid, 0, 0)) {
		hub->waker = pid;
		return 0;
	}
	err = -errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return err;
}

static void end_waker(struct kymo_hub *hub)
{
	int status;

	if (!hub->waker)
		return;
	kill(hub->waker, SIGKILL);
	while (waitpid(hub->waker, &status, __WALL) == hub->waker && WIFSTOPPED(status))
		;
	hub->waker = 0;
}

void hub_waker_stopped(struct kymo_hub *hub, int status)
{
	hub->is_woken = false;
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_CONT, hub->waker, 0, 0); /* without the signal */
		return;
	}
	hub->waker = 0; /* somebody has killed it; where there can't be another, the clock does its work */
	make_waker(hub);
}

static void wake(struct kymo_hub *hub)
{
	if (hub->is_here && !hub->is_woken) {
		hub->is_woken = true;
		tgkill(getpid(), hub->tid, SIGCHLD);
		return;
	}
	if (!hub->is_asleep || hub->is_woken || !hub->waker)
		return;
	hub->is_woken = true;
	kill(hub->waker, SIGURG);
}

/* ---- what others want
 * -------------------------------------------------------------------------------------------------- */

bool hub_is_own_thread(const struct kymo_hub *hub)
{
	return pthread_equal(pthread_self(), hub->thread);
}

int hub_call(struct kymo_hub *hub, int (*run)(struct kymo_hub *hub, void *argument), void *argument)
{
	struct hub_request request = { .run = run, .argument = argument };

	pthread_mutex_lock(&hub->lock);
	if (hub_is_own_thread(hub)) {
		request.result = run(hub, argument);
	} else {
		if (hub->last)
			hub->last->next = &request;
		else
			hub->first = &request;
		hub->last = &request;
		wake(hub);
		while (!request.is_done)
			pthread_cond_wait(&hub->changed, &hub->lock);
	}
	pthread_mutex_unlock(&hub->lock);
	return request.result;
}

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

void hub_kick(struct kymo_hub *hub, struct task *task)
{
	if (!task->is_kicked)
		task->is_kicked = kymo_vec_push(&hub->kicked, task); /* hub_add_task() has made room */
	if (!hub_is_own_thread(hub))
		wake(hub);
}

void hub_drop(struct kymo_hub *hub, struct kymo_engine *engine)
{
	/* Where memory is out, it is never freed. */
	kymo_vec_push(&hub->dropped, engine);
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

/* ---- the thread
 * -------------------------------------------------------------------------------------------------------- */

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
	hub->failure = make_waker(hub);
	hub->has_started = true;
	pthread_cond_broadcast(&hub->changed);
	if (!hub->failure)
		loop(hub);
	hub_release_all(hub, RELEASE_MS);
	end_waker(hub);
	pthread_mutex_unlock(&hub->lock);
	return NULL;
}

/* ---- beginning and end
 * ------------------------------------------------------------------------------------------------- */

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
	hub_close_door(hub->door);
	pthread_mutex_lock(&hub->lock);
	hub->is_ending = true;
	if (hub->is_here)
		hub_release_all(hub, hub->waits_for_any ? RELEASE_MS : RELEASE_HERE_MS);
	else
		wake(hub);
	pthread_mutex_unlock(&hub->lock);
	if (!hub->is_here)
		pthread_join(hub->thread, NULL);
	hub_destroy_door(hub->door);
	deinit(hub);
}

/* ---- on the caller's thread
 * --------------------------------------------------------------------------------------------- */

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
