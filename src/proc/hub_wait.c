/*
 * Waiting for threads that are traced.
 *
 * In a wait for any thread the kernel looks at each that is traced; in one for a single thread, at that. So where there are many, two kinds are asked for by their ids first: those that were
 * interrupted, whose stops are on their way, and those that have told something lately, for as long as a look at all would take. All are looked at now and then, as others wait too.
 */
#include "proc/hub.h"

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"

#define CLOCK_NS 2000000
#define MANY_TASKS 64
#define WAITS_A_SCAN 64
#define SCAN_NS 50		/* of a thread, in a wait for any */

/* ---- statuses that were fetched before their turn ------------------------------------------------------------------------------ */

void hub_keep_status(struct kymo_hub *hub, struct task *task, int status)
{
	struct hub_status early = { .tid = task->tid, .status = status };

	kymo_vec_push(&hub->early, early);	/* hub_add_task() has made room */
	task->is_fetched = true;
}

bool hub_fetch(struct kymo_hub *hub, struct task *task, uint64_t timeout_ns, int *status_ret)
{
	uint64_t deadline = timeout_ns ? kymo_now_ns() + timeout_ns : 0;
	pid_t got = 0;

	for (unsigned int spins = 0; !got; spins++) {
		got = waitpid(task->tid, status_ret, __WALL | WNOHANG);
		if (got || !timeout_ns || kymo_now_ns() >= deadline)
			break;
		kymo_wait_a_little(spins);
	}
	if (got != task->tid)
		return false;
	hub_keep_status(hub, task, *status_ret);
	return true;
}

static struct hub_status take_out(struct kymo_hub *hub, size_t i)
{
	struct hub_status early = hub->early.items[i];

	hub->early.n--;
	memmove(&hub->early.items[i], &hub->early.items[i + 1], (hub->early.n - i) * sizeof(early));
	return early;
}

void hub_forget_status(struct kymo_hub *hub, struct task *task)
{
	for (size_t i = 0; i < hub->early.n; i++)
		if (hub->early.items[i].tid == task->tid) {
			take_out(hub, i);
			break;
		}
	task->is_fetched = false;
}

static pid_t take_early(struct kymo_hub *hub, int *status_ret)
{
	struct hub_status early;

	if (!hub->early.n)
		return 0;
	early = take_out(hub, 0);
	*status_ret = early.status;
	return early.tid;
}

/* ---- those that are likely to tell something. The lock is not held; what is looked at, the hub's thread alone changes ---------- */

void hub_expect(struct kymo_hub *hub, struct task *task)
{
	if (hub->n_tasks >= MANY_TASKS && !task->is_expected)
		task->is_expected = kymo_vec_push(&hub->expected, task->tid);
}

static void told(struct kymo_hub *hub, pid_t tid)
{
	size_t i = 0;

	while (i < HUB_RECENT - 1 && hub->recent[i] != tid)
		i++;
	for (; i > 0; i--)
		hub->recent[i] = hub->recent[i - 1];
	hub->recent[0] = tid;
}

static pid_t look_at_recent(struct kymo_hub *hub, int *status_ret)
{
	for (size_t i = 0; i < HUB_RECENT && hub->recent[i]; i++)
		if (waitpid(hub->recent[i], status_ret, __WALL | __WNOTHREAD | WNOHANG) == hub->recent[i])
			return hub->recent[i];
	return 0;
}

static void forget_expected(struct kymo_hub *hub, size_t i)
{
	struct task *task = hub_find(hub, hub->expected.items[i]);

	if (task)
		task->is_expected = false;
	hub->expected.items[i] = hub->expected.items[--hub->expected.n];
}

/* Each once, from where the last look has ended: those that were interrupted first have stopped first. */
static pid_t look_at_expected(struct kymo_hub *hub, int *status_ret)
{
	for (size_t left = hub->expected.n; left; left--) {
		size_t i = hub->next_expected < hub->expected.n ? hub->next_expected : 0;
		pid_t tid = hub->expected.items[i], got = 0;
		const struct task *task = hub_find(hub, tid);

		if (task && task->was_interrupted)
			got = waitpid(tid, status_ret, __WALL | __WNOTHREAD | WNOHANG);
		hub->next_expected = i;
		if (task && task->was_interrupted && !got)
			hub->next_expected++;
		else
			forget_expected(hub, i);
		if (got == tid)
			return tid;
	}
	return 0;
}

static pid_t wait_for_likely(struct kymo_hub *hub, unsigned int n_tasks, int *status_ret)
{
	uint64_t deadline = kymo_now_ns() + n_tasks * SCAN_NS;
	pid_t got;

	do {
		got = look_at_recent(hub, status_ret);
		if (!got)
			got = look_at_expected(hub, status_ret);
		if (!got)
			sched_yield();
	} while (!got && !hub->is_woken && kymo_now_ns() < deadline);
	return got;
}

/* ---- any ------------------------------------------------------------------------------------------------------------------------ */

static pid_t wait_for_any(struct kymo_hub *hub, bool sleeps, int *status_ret)
{
	bool has_clock = hub_needs_clock(hub) || !hub->waker;
	bool asks_likely = hub->n_tasks >= MANY_TASKS && ++hub->n_unscanned % WAITS_A_SCAN;
	unsigned int n_tasks = hub->n_tasks;
	pid_t got;

	hub->is_asleep = true;
	pthread_mutex_unlock(&hub->lock);
	got = asks_likely ? wait_for_likely(hub, n_tasks, status_ret) : 0;
	if (!got)
		got = waitpid(-1, status_ret, __WALL | __WNOTHREAD | (sleeps && !has_clock ? 0 : WNOHANG));
	if (sleeps && has_clock && got <= 0)
		nanosleep(&(struct timespec){ 0, CLOCK_NS }, NULL);
	pthread_mutex_lock(&hub->lock);
	hub->is_asleep = false;
	return got;
}

pid_t hub_wait(struct kymo_hub *hub, bool sleeps, int *status_ret)
{
	pid_t got = take_early(hub, status_ret);

	return got ? got : wait_for_any(hub, sleeps, status_ret);
}

void hub_deal(struct kymo_hub *hub, pid_t tid, int status)
{
	told(hub, tid);
	hub_dispatch(hub, tid, status);
}
