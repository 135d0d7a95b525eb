/* The calls of include/kymo/engine.h that are about engines. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/backoff.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/remote/ops.h"
#include "hub/remote/guest.h"
#include "hub/remote/proof.h"
#include "hub/replaced.h"
#include "hub/state.h"
#include "hub/task.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/park.h"
#include "hub/trap/watch.h"
#include "kymo/engine.h"
#include "procfs/info.h"

#define LEAVE_NS 2000000000ull
#define AGAIN_NS 2000000000ull

/* ---- lifetime
 * ------------------------------------------------------------------------------------------------------------ */

void kymo_engine_get(struct kymo_engine *engine)
{
	atomic_fetch_add(&engine->refs, 1);
}

void kymo_engine_put(struct kymo_engine *engine)
{
	if (!engine || atomic_fetch_sub(&engine->refs, 1) > 1)
		return;
	if (engine->guest)
		hub_guest_release(engine);
	else if (engine->ops->release)
		engine->ops->release(engine->data);
	kymo_vec_deinit(&engine->breakpoints);
	free(engine);
}

static int drop(struct kymo_hub *hub, void *argument)
{
	hub_drop(hub, argument);
	return 0;
}

void hub_put_later(struct kymo_engine *engine)
{
	unsigned int refs = atomic_load(&engine->refs);

	while (refs > 1)
		if (atomic_compare_exchange_weak(&engine->refs, &refs, refs - 1))
			return;
	hub_call(engine->hub, drop, engine);
}

/* A new engine at the end of the task's, with one reference, the task's own. NULL: memory is out. Lock held. */
static struct kymo_engine *add_engine(struct kymo_hub *hub, struct task *task, const struct hub_attach *attach)
{
	struct kymo_engine *engine = calloc(1, sizeof(*engine));

	if (!engine || !kymo_vec_push(&task->engines, engine)) {
		free(engine);
		return NULL;
	}
	atomic_init(&engine->refs, 1);
	engine->hub = hub;
	engine->task = task;
	engine->ops = attach->ops;
	engine->data = attach->data;
	engine->may_break = attach->flags & KYMO_ATTACH_BREAKPOINTS;
	engine->ops_key = attach->ops_key;
	engine->data_key = attach->data_key;
	engine->name = attach->name + attach->n;
	engine->events = attach->events;
	engine->wants = KYMO_ACTION_RESUME;
	engine->born = task->is_in_event ? hub->event : 0;
	if (attach->guest)
		hub_guest_take(attach->guest, engine);
	hub_release_leavers(hub, task);
	hub_kick(hub, task);
	return engine;
}

/* Where it was the last one of a thread that lives, it is not through until that was let go. */
static void take_out(struct kymo_hub *hub, struct task *task, struct kymo_engine *engine, bool is_last)
{
	if (is_last && kymo_vec_push(&task->leavers, engine))
		return;
	engine->task = NULL;
	hub_drop(hub, engine);
}

void hub_purge_engines(struct kymo_hub *hub, struct task *task)
{
	size_t left = 0, n = task->engines.n;
	bool is_last = !task->was_death_told && !hub_space_keeps(task);

	for (size_t i = 0; i < n; i++)
		is_last &= task->engines.items[i]->is_detached;
	for (size_t i = 0; i < n; i++) {
		struct kymo_engine *engine = task->engines.items[i];

		if (engine->is_detached)
			take_out(hub, task, engine, is_last);
		else
			task->engines.items[left++] = engine;
	}
	task->engines.n = left;
}

void hub_detach_engine(struct kymo_hub *hub, struct kymo_engine *engine)
{
	struct task *task = engine->task;

	if (engine->is_detached)
		return;
	engine->is_detached = true;
	engine->has_later = false;
	engine->wants = KYMO_ACTION_RESUME;
	hub_breakpoints_drop(hub, engine);
	hub_watches_drop(engine);
	if (!task->is_in_event)
		hub_purge_engines(hub, task);
	hub_kick(hub, task);
}

/* ---- attaching
 * ----------------------------------------------------------------------------------------------------------- */

#define ATTACH_FLAGS \
	(KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA | \
	 KYMO_ATTACH_BREAKPOINTS)

static bool is_match(const struct kymo_engine *engine, unsigned int flags, const struct hub_guest *guest,
		     uint64_t ops_key, uint64_t data_key)
{
	return !engine->is_detached && engine->guest == guest &&
	       (!(flags & KYMO_ATTACH_MATCH_OPS) || engine->ops_key == ops_key) &&
	       (!(flags & KYMO_ATTACH_MATCH_DATA) || engine->data_key == data_key);
}

/* "Any engine" that must not be there may be anybody's; who looks for one finds its own. */
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

static bool exists(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info);
}

static int look_up(struct kymo_hub *hub, struct hub_attach *attach)
{
	struct task *task = hub_find(hub, attach->id);
	struct kymo_engine *engine = task ? find_match(task, attach) : NULL;

	if (!engine)
		return task || exists(attach->id) ? -ENOENT : -ESRCH;
	kymo_engine_get(engine);
	*attach->ret = engine;
	return 0;
}

/* With the lock, when it is the hub's: from then on an exec of it is told, and asked about. */
static int check_proof(const struct hub_attach *attach, struct hub_process *process)
{
	return attach->guest ? hub_proof_check_guest(attach->proof, process, attach->id) : 0;
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
	if (task->is_taken) { /* by one who has let go of it, but for who has yet to stop */
		hub_kick(hub, task);
		return -EAGAIN;
	}
	err = check_proof(attach, task->process);
	if (err) {
		hub_kick(hub, task);
		return err;
	}
	engine = add_engine(hub, task, attach);
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

int kymo_engine_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops,
		       void *data, struct kymo_engine **ret)
{
	struct hub_attach attach = { .id = tid, .flags = flags, .ops = ops, .data = data, .ret = ret };

	if (flags & ~ATTACH_FLAGS || (flags & KYMO_ATTACH_CREATE && !ops))
		return -EINVAL;
	if (hub->remote)
		return hub->remote->attach(hub, tid, flags, ops, data, ret);
	attach.ops_key = (uintptr_t)ops;
	attach.data_key = (uintptr_t)data;
	return hub_attach(hub, &attach);
}

/* Let go of what got no engine. */
static void look_at_all(struct kymo_hub *hub, struct hub_process *process)
{
	for (struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		hub_kick(hub, task);
}

static int add_engines(struct kymo_hub *hub, struct hub_process *process, struct hub_attach *attach)
{
	for (struct task *task = process->tasks; task; task = task->in_process) {
		if (attach->flags & KYMO_ATTACH_EXCLUSIVE && find_match(task, attach))
			return -EEXIST;
		if (task->is_taken)
			return -EAGAIN;
	}
	for (struct task *task = process->tasks; task; task = task->in_process) {
		if (task->was_death_told)
			continue;
		if (!add_engine(hub, task, attach))
			return -ENOMEM;
		attach->n++;
	}
	return attach->n ? 0 : -ESRCH;
}

/* As many as were added, from the ends. */
static void take_back(struct kymo_hub *hub, struct hub_process *process, const struct hub_attach *attach)
{
	size_t left = attach->n;

	for (struct task *task = process->tasks; task && left; task = task->in_process) {
		if (task->was_death_told)
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
		take_back(hub, process, attach);
	look_at_all(hub, process);
	return err;
}

int hub_attach_process(struct kymo_hub *hub, struct hub_attach *attach)
{
	attach->flags |= KYMO_ATTACH_CREATE;
	return attach_patiently(hub, attach_to_process, attach);
}

int kymo_engine_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			       void *data, unsigned int events, size_t *n_ret)
{
	struct hub_attach attach = { .id = pid, .flags = flags, .events = events, .ops = ops, .data = data };
	int err;

	if (flags & ~ATTACH_FLAGS || !ops || events & ~HUB_MASK)
		return -EINVAL;
	if (hub->remote)
		return hub->remote->attach_process(hub, pid, flags, ops, data, events, n_ret);
	attach.ops_key = (uintptr_t)ops;
	attach.data_key = (uintptr_t)data;
	err = hub_attach_process(hub, &attach);
	if (!err && n_ret)
		*n_ret = attach.n;
	return err;
}

/* ---- detaching many
 * -------------------------------------------------------------------------------------------------------- */

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
		for (struct task *task = hub->buckets[i]; task; task = task->in_bucket)
			for (size_t j = task->engines.n; j-- > 0;) {
				struct kymo_engine *engine = task->engines.items[j];

				if (task->is_reaping ||
				    !is_match(engine, flags, match->guest, match->ops_key, match->data_key))
					continue;
				if (kymo_vec_push(&leaving->engines, engine))
					kymo_engine_get(engine);
				leaving->n++;
				hub_detach_engine(hub, engine);
			}
	return 0;
}

static bool is_through(const struct kymo_engine *engine)
{
	return !engine->is_in_callback && !(engine->is_detached && engine->task);
}

static bool are_all_through(struct kymo_hub *hub, const struct leaving *leaving, size_t *n_through)
{
	pthread_mutex_lock(&hub->lock);
	while (*n_through < leaving->engines.n && is_through(leaving->engines.items[*n_through]))
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

size_t kymo_engine_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, void *data)
{
	if (hub->remote)
		return hub->remote->detach_all(hub, ops, data);
	return hub_detach_all(hub, &(struct hub_match){ .ops_key = (uintptr_t)ops, .data_key = (uintptr_t)data });
}

/* ---- one engine
 * -------------------------------------------------------------------------------------------------------------- */

pid_t kymo_engine_tid(const struct kymo_engine *engine)
{
	pid_t tid;

	if (engine->hub->remote)
		return engine->hub->remote->tid(engine);
	pthread_mutex_lock(&engine->hub->lock);
	tid = engine->task && !engine->is_detached ? engine->task->tid : 0;
	pthread_mutex_unlock(&engine->hub->lock);
	return tid;
}

pid_t kymo_engine_pid(const struct kymo_engine *engine)
{
	pid_t pid;

	if (engine->hub->remote)
		return engine->hub->remote->pid(engine);
	pthread_mutex_lock(&engine->hub->lock);
	pid = engine->task && !engine->is_detached ? engine->task->process->pid : 0;
	pthread_mutex_unlock(&engine->hub->lock);
	return pid;
}

static int set_events(struct kymo_engine *engine, unsigned int events)
{
	unsigned int cleared = engine->events & ~events, added = events & ~engine->events;
	const struct task *task = engine->task;

	if (engine->is_detached || !task)
		return -ESRCH;
	if (task->was_death_told && (cleared | added) & KYMO_EVENT_DEATH)
		return -EALREADY;
	if (task->is_reaping && cleared & KYMO_EVENT_REAP)
		return -EALREADY;
	engine->events = events;
	hub_kick(engine->hub, engine->task);
	return cleared && engine->is_in_callback && !hub_is_own_thread(engine->hub) ? -EINPROGRESS : 0;
}

int kymo_engine_set_events(struct kymo_engine *engine, unsigned int events)
{
	int err;

	if (events & ~HUB_MASK)
		return -EINVAL;
	if (engine->hub->remote)
		return engine->hub->remote->set_events(engine, events);
	pthread_mutex_lock(&engine->hub->lock);
	err = set_events(engine, events);
	pthread_mutex_unlock(&engine->hub->lock);
	return err;
}

static int detach(struct kymo_engine *engine)
{
	if (engine->task->is_reaping)
		return -EALREADY;
	hub_detach_engine(engine->hub, engine);
	return engine->is_in_callback ? -EINPROGRESS : 0;
}

static bool needs_quiesce(enum kymo_action action)
{
	return action == KYMO_ACTION_REPORT || action == KYMO_ACTION_SINGLESTEP || action == KYMO_ACTION_BLOCKSTEP;
}

static int control(struct kymo_engine *engine, enum kymo_action action)
{
	struct task *task = engine->task;
	bool is_stopped;

	if (engine->is_detached || !task)
		return -ESRCH;
	if (action == KYMO_ACTION_DETACH)
		return detach(engine);
	if (task->was_death_told)
		return -ESRCH;
	if (needs_quiesce(action) && !(engine->events & KYMO_EVENT_QUIESCE))
		return -EINVAL;
	is_stopped = task->state == TASK_STOPPED && !task->is_in_event;
	if (engine->is_in_callback) {
		engine->has_later = true;
		engine->later = action;
	} else {
		engine->wants = action;
	}
	engine->owes_report |= action == KYMO_ACTION_INTERRUPT || action == KYMO_ACTION_REPORT ||
			       (action == KYMO_ACTION_STOP && !is_stopped);
	hub_kick(engine->hub, task);
	return action == KYMO_ACTION_STOP && !is_stopped ? -EINPROGRESS : 0;
}

int kymo_engine_control(struct kymo_engine *engine, enum kymo_action action)
{
	int err;

	if ((unsigned int)action > KYMO_ACTION_DETACH)
		return -EINVAL;
	if (engine->hub->remote)
		return engine->hub->remote->control(engine, action);
	pthread_mutex_lock(&engine->hub->lock);
	err = control(engine, action);
	pthread_mutex_unlock(&engine->hub->lock);
	return err;
}

static bool is_past(const struct kymo_engine *engine, uint64_t event)
{
	const struct kymo_hub *hub = engine->hub;

	return hub_is_own_thread(hub) ||
	       (is_through(engine) && !(engine->task && engine->task->is_in_event && hub->event == event));
}

static int result_of_barrier(const struct kymo_engine *engine)
{
	if (engine->is_in_callback)
		return -EDEADLK;
	return engine->is_detached || !engine->task ? -ESRCH : 0;
}

int hub_try_barrier(struct kymo_engine *engine, uint64_t *event)
{
	struct kymo_hub *hub = engine->hub;
	int err;

	pthread_mutex_lock(&hub->lock);
	if (!*event)
		*event = hub->event;
	err = is_past(engine, *event) ? result_of_barrier(engine) : -EAGAIN;
	pthread_mutex_unlock(&hub->lock);
	return err;
}

int kymo_engine_barrier(struct kymo_engine *engine)
{
	struct kymo_hub *hub = engine->hub;
	uint64_t event;
	int err;

	if (hub->remote)
		return hub->remote->barrier(engine);
	pthread_mutex_lock(&hub->lock);
	event = hub->event;
	while (!is_past(engine, event))
		pthread_cond_wait(&hub->changed, &hub->lock);
	err = result_of_barrier(engine);
	pthread_mutex_unlock(&hub->lock);
	return err;
}
