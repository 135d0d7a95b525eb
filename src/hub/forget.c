/* The end of a task. */
#include <pthread.h>
#include <stdlib.h>

#include "base/vec.h"
#include "hub/engine.h"
#include "hub/forget.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/space.h"
#include "hub/trap/watch.h"

void hub_forget_task(struct kymo_hub *hub, struct task *task)
{
	hub_watches_forget(hub, task);
	for (size_t i = 0; i < task->engines.n; i++) {
		hub_breakpoints_drop(hub, task->engines.items[i]);
		task->engines.items[i]->task = NULL;
		task->engines.items[i]->is_detached = true;
		hub_drop(hub, task->engines.items[i]);
	}
	hub_release_leavers(hub, task);
	for (size_t i = 0; task->is_kicked && i < hub->tasks.kicked.n; i++)
		if (hub->tasks.kicked.items[i] == task)
			hub->tasks.kicked.items[i--] = hub->tasks.kicked.items[--hub->tasks.kicked.n];
	if (task->resumed.is_fetched)
		hub_forget_stop(hub, task);
	hub_end_hold(hub, task);
	hub_take_out_task(hub, task);
	if (task->process->space)
		task->process->space->is_alone = false; /* if it lives, it may make a process that shares the memory */
	if (!task->process->tasks)
		hub_space_leave(hub, task->process);
	hub_put_process(hub, task->process);
	kymo_vec_deinit(&task->engines);
	kymo_vec_deinit(&task->leavers);
	kymo_vec_deinit(&task->sent);
	hub_forget_remote_call(task);
	free(task);
	pthread_cond_broadcast(&hub->changed);
}
