/* Attaching engines to threads of a hub that traces by itself, and detaching many. */
#include <errno.h>

#include "base/backoff.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/attach.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/remote/guest.h"
#include "hub/state.h"
#include "hub/thread/adopt.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "kymo/engine.h"
#include "procfs/info.h"

#define LEAVE_NS 2000000000ull
#define AGAIN_NS 10000000000ull /* a thread that is to be let go has to stop, for which it needs a processor */

/* ---- attaching ------------------------------------------------------------------------------- */

static bool is_match(const struct kymo_engine *engine, unsigned int flags, const struct hub_guest *guest,
		     uint64_t ops_key, uint64_t data_key)
{
	return !engine->is_detached && engine->guest == guest &&
	       (!(flags & KYMO_ATTACH_MATCH_OPS) || engine->ops_key == ops_key) &&
	       (!(flags & KYMO_ATTACH_MATCH_DATA) || engine->data_key == data_key);
}

/* "Any engine" that must not exist may be any client's. A lookup finds the caller's own engines. */
static bool matches(const struct kymo_engine *engine, const struct hub_attach *attach)
{
	if (attach->flags & KYMO_ATTACH_CREATE && !(attach->flags & (KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA)))
		return !engine->is_detached;
	return is_match(engine, attach->flags, attach->guest, attach->ops_key, attach->data_key);
}

static struct kymo_engine *find_match(const struct task *task, const struct hub_attach *attach)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (matches(task->engines.items[i], attach))
			return task->engines.items[i];
	return NULL;
}

static int look_up(struct kymo_hub *hub, struct hub_attach *attach)
{
	struct task *task = hub_find(hub, attach->id);
	struct kymo_engine *engine = task ? find_match(task, attach) : NULL;

	if (!engine)
		return task || kymo_process_exists(attach->id) ? -ENOENT : -ESRCH;
	kymo_engine_get(engine);
	*attach->ret = engine;
	return 0;
}

/* With the lock, when it is the hub's: from then on an exec of it is told, and asked about. */
static int check_proof(const struct hub_attach *attach, struct hub_process *process)
{
	return attach->guest ? attach->guest->hooks->check_proof(attach->proof, process, attach->id) : 0;
}

static int attach_to_thread(struct kymo_hub *hub, void *argument)
{
	struct hub_attach *attach = argument;
	struct kymo_engine *engine;
	struct task *task;
	int err;

	if (!(attach->flags & KYMO_ATTACH_CREATE))
		return look_up(hub, attach);
	task = hub_find(hub, attach->id);
	if (task && attach->flags & KYMO_ATTACH_EXCLUSIVE && !hub_has_end(hub, task) && find_match(task, attach))
		return -EEXIST;
	err = hub_seize(hub, attach->id, 0, &task);
	if (err)
		return err;
	if (task->birth.is_taken) { /* by one that has detached it, except threads that have yet to stop */
		hub_kick(hub, task);
		return -EAGAIN;
	}
	err = check_proof(attach, task->process);
	if (err) {
		hub_kick(hub, task);
		return err;
	}
	engine = hub_add_engine(hub, task, attach);
	if (!engine) {
		hub_kick(hub, task);
		return -ENOMEM;
	}
	kymo_engine_get(engine);
	*attach->ret = engine;
	return 0;
}

/* Again, where the process has become another program meanwhile, when that has been dealt with. Not in a callback,
 * which would wait for itself. */
static int attach_patiently(struct kymo_hub *hub, int (*run)(struct kymo_hub *hub, void *argument),
			    struct hub_attach *attach)
{
	uint64_t deadline = kymo_now_ns() + AGAIN_NS;
	bool is_own = hub_is_own_thread(hub);
	int err = hub_call(hub, run, attach);

	for (unsigned int spins = 0;
	     err == -EAGAIN && (!is_own || (hub->is_here && !hub->depth)) && kymo_now_ns() < deadline; spins++) {
		if (is_own)
			hub_pump(hub);
		else
			kymo_back_off(spins);
		err = hub_call(hub, run, attach);
	}
	return err;
}

int hub_attach(struct kymo_hub *hub, struct hub_attach *attach)
{
	return attach_patiently(hub, attach_to_thread, attach);
}

int hub_local_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops, void *data,
		     struct kymo_engine **ret)
{
	struct hub_attach attach = { .id = tid, .flags = flags, .ops = ops, .data = data, .ret = ret };

	attach.ops_key = (uintptr_t)ops;
	attach.data_key = (uintptr_t)data;
	return hub_attach(hub, &attach);
}

/* Let go of what got no engine. */
static void kick_process(struct kymo_hub *hub, struct hub_process *process)
{
	for (struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		hub_kick(hub, task);
}

static int add_engines(struct kymo_hub *hub, struct hub_process *process, struct hub_attach *attach)
{
	for (struct task *task = process->tasks; task; task = task->in_process) {
		if (attach->flags & KYMO_ATTACH_EXCLUSIVE && find_match(task, attach))
			return -EEXIST;
		if (task->birth.is_taken)
			return -EAGAIN;
	}
	for (struct task *task = process->tasks; task; task = task->in_process) {
		if (task->end.was_told)
			continue;
		if (!hub_add_engine(hub, task, attach))
			return -ENOMEM;
		attach->n++;
	}
	return attach->n ? 0 : -ESRCH;
}

/* As many as were added, from the ends. */
static void take_back_engines(struct kymo_hub *hub, struct hub_process *process, const struct hub_attach *attach)
{
	size_t left = attach->n;

	for (struct task *task = process->tasks; task && left; task = task->in_process) {
		if (task->end.was_told)
			continue;
		hub_detach_engine(hub, task->engines.items[task->engines.n - 1]);
		left--;
	}
}

static int attach_to_process(struct kymo_hub *hub, void *argument)
{
	struct hub_attach *attach = argument;
	struct hub_process *process;
	int err;

	err = hub_seize_all(hub, attach->id);
	process = hub_find_process(hub, attach->id);
	if (!err)
		err = process ? check_proof(attach, process) : -ESRCH;
	if (!err)
		err = add_engines(hub, process, attach);
	if (err && process)
		take_back_engines(hub, process, attach);
	kick_process(hub, process);
	return err;
}

int hub_attach_process(struct kymo_hub *hub, struct hub_attach *attach)
{
	attach->flags |= KYMO_ATTACH_CREATE;
	return attach_patiently(hub, attach_to_process, attach);
}

int hub_local_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			     void *data, unsigned int events, size_t *n_ret)
{
	struct hub_attach attach = { .id = pid, .flags = flags, .events = events, .ops = ops, .data = data };
	int err;

	attach.ops_key = (uintptr_t)ops;
	attach.data_key = (uintptr_t)data;
	err = hub_attach_process(hub, &attach);
	if (!err && n_ret)
		*n_ret = attach.n;
	return err;
}

/* ---- detaching many -------------------------------------------------------------------------- */

struct leaving {
	const struct hub_match *match;
	KYMO_VEC(struct kymo_engine *) engines; /* references */
	size_t n;
};

static int detach_matching(struct kymo_hub *hub, void *argument)
{
	struct leaving *leaving = argument;
	const struct hub_match *match = leaving->match;
	unsigned int flags = match->is_any ? 0 : KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA;

	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket)
			for (size_t j = task->engines.n; j-- > 0;) {
				struct kymo_engine *engine = task->engines.items[j];

				if (task->end.is_reaping ||
				    !is_match(engine, flags, match->guest, match->ops_key, match->data_key))
					continue;
				if (kymo_vec_push(&leaving->engines, engine))
					kymo_engine_get(engine);
				leaving->n++;
				hub_detach_engine(hub, engine);
			}
	return 0;
}

static bool are_all_through(struct kymo_hub *hub, const struct leaving *leaving, size_t *n_through)
{
	pthread_mutex_lock(&hub->lock);
	while (*n_through < leaving->engines.n && hub_engine_is_through(leaving->engines.items[*n_through]))
		++*n_through;
	pthread_mutex_unlock(&hub->lock);
	return *n_through == leaving->engines.n;
}

/* It is looked now and then: each thread that is let go would wake us up, and have us take the lock. */
static void wait_until_through(struct kymo_hub *hub, const struct leaving *leaving)
{
	uint64_t deadline = kymo_now_ns() + LEAVE_NS;
	size_t n_through = 0;

	for (unsigned int spins = 0; !are_all_through(hub, leaving, &n_through) && kymo_now_ns() < deadline; spins++)
		kymo_back_off(spins);
}

static int drop_all(struct kymo_hub *hub, void *argument)
{
	const struct leaving *leaving = argument;

	for (size_t i = 0; i < leaving->engines.n; i++)
		hub_drop(hub, leaving->engines.items[i]);
	return 0;
}

size_t hub_detach_all(struct kymo_hub *hub, const struct hub_match *match)
{
	struct leaving leaving = { .match = match };

	hub_call(hub, detach_matching, &leaving);
	if (!hub_is_own_thread(hub))
		wait_until_through(hub, &leaving);
	if (match->guest || match->is_any)
		hub_call(hub, drop_all, &leaving);
	for (size_t i = 0; i < leaving.engines.n && !match->guest && !match->is_any; i++)
		kymo_engine_put(leaving.engines.items[i]);
	kymo_vec_deinit(&leaving.engines);
	return leaving.n;
}

size_t hub_local_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, const void *data)
{
	return hub_detach_all(hub, &(struct hub_match){ .ops_key = (uintptr_t)ops, .data_key = (uintptr_t)data });
}

int hub_local_leave(struct kymo_hub *hub)
{
	if (hub_is_own_thread(hub))
		return -EDEADLK;
	hub_detach_all(hub, &(struct hub_match){ .is_any = true });
	return 0;
}
