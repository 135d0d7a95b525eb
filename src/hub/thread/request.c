/*
 * What other threads ask the hub's thread for, and how it is woken.
 *
 * Waiting. Only wait() tells of traced threads, and a wait() for all of them ends only when one of them changes its
 * state. So the hub's thread has a child that does nothing but be traced, the waker. Any signal to it makes it stop,
 * which ends the wait; then the hub's thread looks for requests. This needs no signal handlers, and no SIGCHLD, which
 * the program may want for itself. The kernel ends the waker with the hub's thread.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"

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

int hub_waker_create(struct kymo_hub *hub)
{
	pid_t parent = getpid(), pid = _Fork();
	int err;

	if (!pid)
		be_waker(parent);
	if (pid < 0)
		return -errno;
	if (!ptrace(PTRACE_SEIZE, pid, 0, 0)) {
		hub->sleep.waker = pid;
		return 0;
	}
	err = -errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return err;
}

void hub_waker_destroy(struct kymo_hub *hub)
{
	int status;

	if (!hub->sleep.waker)
		return;
	kill(hub->sleep.waker, SIGKILL);
	while (waitpid(hub->sleep.waker, &status, __WALL) == hub->sleep.waker && WIFSTOPPED(status))
		;
	hub->sleep.waker = 0;
}

void hub_waker_stopped(struct kymo_hub *hub, int status)
{
	hub->sleep.is_woken = false;
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_CONT, hub->sleep.waker, 0, 0); /* without the signal */
		return;
	}
	hub->sleep.waker = 0; /* it was killed; where there can't be another, the clock does its work */
	hub_waker_create(hub);
}

void hub_wake(struct kymo_hub *hub)
{
	if (hub->is_here && !hub->sleep.is_woken) {
		hub->sleep.is_woken = true;
		tgkill(getpid(), hub->tid, SIGCHLD);
		return;
	}
	if (hub->sleep.is_resting) {
		pthread_cond_signal(&hub->sleep.asked);
		return;
	}
	if (!hub->sleep.is_asleep || hub->sleep.is_woken || !hub->sleep.waker)
		return;
	hub->sleep.is_woken = true;
	kill(hub->sleep.waker, SIGURG);
}

bool hub_is_own_thread(const struct kymo_hub *hub)
{
	return pthread_equal(pthread_self(), hub->thread);
}

/* To be told of each change of the hub would take a switch of threads or two each time. */
void hub_request_done(struct hub_request *request, bool is_all)
{
	atomic_uint *is_done = &request->is_done;

	atomic_store(is_done, is_all ? 2 : 1);
	syscall(SYS_futex, is_done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
		0); /* at worst it wakes what waits in its place */
}

/* And until threads that were kicked for it have been looked at, which the hub's thread does before it lets go of the
 * lock. */
static void wait_until_done(struct kymo_hub *hub, struct hub_request *request)
{
	unsigned int is_done;

	while (!(is_done = atomic_load(&request->is_done)))
		syscall(SYS_futex, &request->is_done, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	if (is_done == 2)
		return;
	pthread_mutex_lock(&hub->lock);
	pthread_mutex_unlock(&hub->lock);
}

int hub_call(struct kymo_hub *hub, int (*run)(struct kymo_hub *hub, void *argument), void *argument)
{
	struct hub_request request = { .run = run, .argument = argument };
	bool rests;

	pthread_mutex_lock(&hub->lock);
	if (hub_is_own_thread(hub)) {
		request.result = run(hub, argument);
		pthread_mutex_unlock(&hub->lock);
	} else {
		if (hub->requests.last)
			hub->requests.last->next = &request;
		else
			hub->requests.first = &request;
		hub->requests.last = &request;
		rests = hub->sleep.is_resting;
		if (!rests)
			hub_wake(hub);
		pthread_mutex_unlock(&hub->lock);
		if (rests) /* now, as it would only wait for the lock before */
			pthread_cond_signal(&hub->sleep.asked);
		wait_until_done(hub, &request);
	}
	return request.result;
}

void hub_kick(struct kymo_hub *hub, struct task *task)
{
	if (!task->is_kicked)
		task->is_kicked = kymo_vec_push(&hub->tasks.kicked, task); /* hub_add_task() has made room */
	if (!hub_is_own_thread(hub))
		hub_wake(hub);
}

void hub_drop(struct kymo_hub *hub, struct kymo_engine *engine)
{
	/* Where memory is out, it is never freed. */
	kymo_vec_push(&hub->dropped, engine);
}
