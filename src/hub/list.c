/* Which engines there are, of a hub that traces by itself. Only what the hub knows is told; no thread is
 * looked at, so none is stopped and nothing waits for the hub's thread. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/engine.h"
#include "hub/list.h"
#include "hub/remote/guest.h"
#include "hub/state.h"
#include "hub/thread/task.h"
#include "kymo/engine.h"

/* Engines that are told, of which the first `from` are left out. */
struct engine_list {
	struct kymo_engine_info *infos;
	size_t from, max, n;           /* n: of all that there are */
	const struct hub_guest *guest; /* that was asked for last */
	pid_t guest_pid;
};

static pid_t owner_of(struct engine_list *list, const struct kymo_engine *engine)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (!engine->guest)
		return getpid();
	if (engine->guest != list->guest)
		list->guest_pid =
			getsockopt(engine->guest->requests, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? 0 : peer.pid;
	list->guest = engine->guest;
	return list->guest_pid;
}

static void add_engine(struct engine_list *list, const struct task *task, const struct kymo_engine *engine)
{
	if (list->n >= list->from && list->n - list->from < list->max)
		list->infos[list->n - list->from] = (struct kymo_engine_info){
			.tid = task->tid,
			.pid = task->process->pid,
			.owner = owner_of(list, engine),
			.events = engine->events,
			.wants = (int)engine->wants,
		};
	list->n++;
}

static void add_task(struct engine_list *list, const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached)
			add_engine(list, task, task->engines.items[i]);
}

int hub_list(struct kymo_hub *hub, pid_t id, size_t from, struct kymo_engine_info *infos, size_t max, size_t *n_ret)
{
	struct engine_list list = { .infos = infos, .from = from, .max = max };
	const struct hub_process *process;
	const struct task *task;
	int err = 0;

	pthread_mutex_lock(&hub->lock);
	process = hub_find_process(hub, id);
	task = hub_find(hub, id);
	if (process)
		for (task = process->tasks; task; task = task->in_process)
			add_task(&list, task);
	else if (task)
		add_task(&list, task);
	else
		err = -ESRCH;
	pthread_mutex_unlock(&hub->lock);
	if (!err)
		*n_ret = list.n;
	return err;
}

int hub_local_list(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret)
{
	return hub_list(hub, id, 0, infos, max, n_ret);
}
