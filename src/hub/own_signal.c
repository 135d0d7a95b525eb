#include <stddef.h>
#include <sys/user.h>

#include "hub/engine.h"
#include "hub/own_signal.h"
#include "hub/state.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"

void hub_own_signal_expect(struct kymo_engine *engine, int signal, uint64_t at)
{
	struct kymo_hub *hub = engine->hub;

	pthread_mutex_lock(&hub->lock);
	if (engine->task && !engine->is_detached)
		engine->task->own = (struct hub_own_signal){ .engine = engine, .signal = signal, .at = at };
	pthread_mutex_unlock(&hub->lock);
}

void hub_own_signal_move(struct kymo_hub *hub, pid_t tid, uint64_t at)
{
	struct task *task;

	pthread_mutex_lock(&hub->lock);
	task = hub_find(hub, tid);
	if (task) {
		task->own.at = at;
		task->own.signal = at ? task->own.signal : 0;
	}
	pthread_mutex_unlock(&hub->lock);
}

bool hub_own_signal_has_come(struct kymo_engine *engine)
{
	struct kymo_hub *hub = engine->hub;
	bool has_come = false;

	pthread_mutex_lock(&hub->lock);
	if (engine->task && engine->task->own.engine == engine) {
		has_come = engine->task->own.has_come;
		engine->task->own.has_come = false;
	}
	pthread_mutex_unlock(&hub->lock);
	return has_come;
}

static struct kymo_engine *engine_of(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (task->engines.items[i] == task->own.engine && !task->engines.items[i]->is_detached)
			return task->engines.items[i];
	return NULL;
}

bool hub_own_signal_stopped(struct task *task, int signal)
{
	struct user_regs_struct registers;
	struct kymo_engine *engine;

	if (!task->own.signal || task->own.signal != signal || kymo_get_registers(task->tid, &registers))
		return false;
	if (registers.rip != task->own.at)
		return false;
	engine = engine_of(task);
	if (engine)
		engine->owes_report = true;
	task->own.signal = 0;
	task->own.has_come = true;
	return true;
}

bool hub_own_signal_is_sent(const struct task *task)
{
	return task->own.signal && task->call.ip == task->own.at;
}

void hub_own_signal_forget(struct task *task)
{
	task->own = (struct hub_own_signal){ .signal = 0 };
}
