/* What owners ask for: that a process is frozen, and what is done to its threads then. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "hub/freeze/answer.h"
#include "hub/freeze/remote_call.h"
#include "hub/freeze/freeze.h"
#include "hub/hub.h"
#include "hub/remote/guest.h"
#include "hub/remote/message.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/thread/adopt.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/break.h"
#include "hub/trap/text.h"
#include "procfs/info.h"
#include "procfs/memory.h"

#define STOP_NS 2000000000ull
#define TAKE_TRIES 20
#define TAKE_PAUSE_NS 1000000

/* ---- job --------------------------------------------------------------------------------- */

static void freeze_task(struct kymo_hub *hub, struct task *task)
{
	if (task->must_freeze)
		return;
	task->must_freeze = true;
	hub_kick(hub, task);
}

/* All that there are; how many are new to the hub. */
static int freeze_all(struct kymo_hub *hub, struct hub_process *process)
{
	pid_t pid = process->pid;
	int n;

	for (struct task *task = process->tasks; task; task = task->in_process)
		freeze_task(hub, task);
	n = !process->owner->takes && hub_knows_threads(hub, pid) ? 0 : hub_seize_threads(hub, pid);
	process = hub_find_process(hub, pid); /* where memory is out, one without threads has gone */
	for (struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		hub_kick(hub, task); /* new ones must freeze already */
	return n;
}

/* Freeze a thread that makes system calls where the first thread had better not. It may have ended, or belong to
 * another tracer: the owner does without it. */
static void freeze_second(struct kymo_hub *hub, struct hub_process *process, pid_t tid)
{
	struct kymo_process_info info;
	struct task *task;

	process->second_frozen = 0;
	if (tid <= 0 || tid == process->pid || !kymo_process_peek(tid, &info) || info.tgid != process->pid ||
	    hub_seize(hub, tid, process->pid, &task) || task->process != process || hub_freeze_is_past(task))
		return;
	process->second_frozen = tid;
	freeze_task(hub, task);
}

static int freeze_first(struct kymo_hub *hub, struct hub_process *process, pid_t second)
{
	struct task *task;
	int err = hub_seize(hub, process->pid, process->pid, &task);

	if (err || hub_freeze_is_past(task))
		return err ? err : -ESRCH;
	freeze_task(hub, task);
	freeze_second(hub, process, second);
	return 0;
}

/* Of a client; the hub's own process needs none. */
static int check_proof(struct kymo_hub *hub, const struct hub_owner *owner, pid_t pid)
{
	struct hub_process *process = hub_find_process(hub, pid);

	if (!owner->guest)
		return 0;
	return process ? owner->guest->hooks->check_proof(owner->proof, process, pid) : -ESRCH;
}

static int freeze(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	struct hub_owner *owner = job->owner;
	bool is_first = job->message->flags & HUB_FREEZE_FIRST;
	pid_t second = job->message->word <= INT32_MAX ? (pid_t)job->message->word : 0;
	struct hub_process *process = hub_find_process(hub, job->message->tid);
	int n, err;

	if (owner->takes)
		process = hub_get_process(hub, job->message->tid);
	if (!process || (!process->tasks && !owner->takes))
		return owner->takes ? -ENOMEM : -ENOENT;
	if (process->follower && process->follower != owner && process->follower->is_closed)
		return -EBUSY;
	if ((process->owner && process->owner != owner) || (owner->frozen && owner->frozen != process->pid)) {
		hub_put_process(hub, process);
		return -EBUSY;
	}
	err = check_proof(hub, owner, process->pid);
	if (err)
		return err;
	process->owner = owner;
	process->is_first_frozen = is_first;
	owner->frozen = process->pid;
	n = is_first ? freeze_first(hub, process, second) : freeze_all(hub, process);
	err = n < 0 ? n : check_proof(hub, owner, owner->frozen); /* seizing may have waited for an exec */
	return err ? err : n;
}

/* Threads that were made so that no tracer is told (CLONE_UNTRACED). */
static bool has_untraced(struct hub_owner *owner)
{
	bool has;

	pthread_mutex_lock(&owner->hub->lock);
	has = hub_lacks_threads(owner->hub, owner->frozen);
	pthread_mutex_unlock(&owner->hub->lock);
	return has;
}

static bool is_held(const struct hub_owner *owner, struct hub_message *message)
{
	const struct task *task = hub_find(owner->hub, message->tid);

	return task && hub_is_held(task);
}

/* The tracer of a thread that is to be seized may be about to detach it. And a process may have executed another
 * program, which the hub has not dealt with yet. No thread is interrupted before all are the hub's. */
static int freeze_patiently(struct hub_owner *owner, struct hub_message *message)
{
	uint64_t deadline = kymo_now_ns() + STOP_NS;
	int n = hub_freeze_ask(freeze, owner, message, NULL);

	for (int i = 0; (n == -EBUSY && owner->takes && i < TAKE_TRIES) || (n == -EAGAIN && kymo_now_ns() < deadline);
	     i++) {
		if (n == -EBUSY || !hub_is_own_thread(owner->hub))
			nanosleep(&(struct timespec){ 0, TAKE_PAUSE_NS }, NULL);
		else
			hub_pump(owner->hub);
		n = hub_freeze_ask(freeze, owner, message, NULL);
	}
	if (n >= 0)
		hub_flush(owner->hub);
	return n;
}

/* A stopped thread makes no thread any more. So when all have stopped and no other thread is found, none runs. */
static int64_t answer_freeze(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	bool is_sure = message->flags & HUB_FREEZE_FIRST, is_more;
	pid_t pid = message->tid;
	int n, err = 0;

	if (hub_freeze_is_in_callback(owner))
		return -EDEADLK; /* for which all wait */
	do {
		message->tid = pid;
		n = freeze_patiently(owner, message);
		if (n >= 0)
			err = hub_freeze_wait(owner, hub_freeze_are_all_still, message, STOP_NS);
		is_more = n > 0 || (n == 0 && !err && !is_sure && has_untraced(owner));
		is_sure |= n == 0;
	} while (!err && is_more);
	err = n == -EAGAIN ? -ESRCH : n < 0 ? n : err;
	if (err == -ETIMEDOUT && hub_freeze_is_done(owner, is_held, message))
		err = -EAGAIN;
	/* A process that is held already stays so; and what is on this thread may have been requested for a reason that
	 * lasts. */
	if (err && owner->frozen == pid && owner->requests >= 0)
		hub_freeze_drop(owner);
	return err;
}

static int read_registers(const struct task *task, struct user_regs_struct *ret)
{
	if (!task->traps.knows_registers)
		return kymo_get_registers(task->tid, ret);
	*ret = task->traps.told;
	return 0;
}

static int look_at_answer(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	const struct hub_process *process = hub_frozen_process(hub, job->owner);
	struct hub_held *held = (struct hub_held *)(void *)job->memory;
	uint64_t skip = job->message->word;
	size_t n = 0;
	int err;

	if (!process)
		return -ESRCH;
	memset(job->memory, 0, HUB_DATA_MAX);
	for (const struct task *task = process->tasks; task && n < HUB_HELD_MAX; task = task->in_process) {
		if (!hub_is_still(task))
			continue;
		if (skip) {
			skip--;
			continue;
		}
		err = read_registers(task, &held[n].registers);
		if (err == -ENOTSUP && job->owner->requests < 0)
			err = 0; /* 32-bit code has registers of its own, of which nothing is needed */
		if (!err && job->owner->requests >= 0) /* an own one asks for them by itself */
			err = kymo_get_facts(task->tid, KYMO_FACTS_ALL, &held[n].facts);
		if (err == -ESRCH)
			continue; /* it was killed */
		if (err)
			return err;
		held[n].stop_signal = task->group_stop;
		held[n++].tid = task->tid;
	}
	return 0;
}

static int64_t answer_held(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return message->size == HUB_HELD_MAX * sizeof(struct hub_held)
		       ? hub_freeze_ask(look_at_answer, owner, message, memory)
		       : -EINVAL;
}

static int set(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	struct task *task = hub_frozen_task(hub, job);

	if (!task || task->remote_call)
		return -ESRCH;
	task->traps.knows_registers = false;
	return kymo_set_registers(task->tid, &job->message->registers);
}

static int64_t answer_set(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return hub_freeze_ask(set, owner, message, memory);
}

static int read_xstate(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	const struct task *task = hub_frozen_task(hub, job);
	size_t size;
	int err;

	memset(job->memory, 0, HUB_DATA_MAX);
	err = task ? kymo_get_xstate(task->tid, job->memory, HUB_DATA_MAX, &size) : -ESRCH;
	if (!err)
		job->message->word = size;
	return err;
}

static int64_t answer_xstate(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return message->size == HUB_DATA_MAX ? hub_freeze_ask(read_xstate, owner, message, memory) : -EINVAL;
}

static int write_memory(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	struct hub_process *process = hub_frozen_process(hub, job->owner);
	const struct hub_memory *memory;

	if (process && process->space)
		return hub_space_write_text(hub, process, job->message->word, job->memory, job->message->size);
	memory = process ? hub_memory_of(process) : NULL;
	return memory ? kymo_memory_write(&memory->opened, job->message->word, job->memory, job->message->size)
		      : -ESRCH;
}

static int64_t answer_write(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return hub_freeze_ask(write_memory, owner, message, memory);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static int64_t (*const answers[HUB_N_TYPES])(struct hub_owner *owner, struct hub_message *message, uint8_t *memory) = {
	[HUB_FREEZE] = answer_freeze,
	[HUB_HELD] = answer_held,
	[HUB_FREEZE_SET] = answer_set,
	[HUB_FREEZE_XSTATE] = answer_xstate,
	[HUB_FREEZE_BEGIN_CALLS] = hub_remote_call_begin,
	[HUB_FREEZE_CALL] = hub_remote_call_make,
	[HUB_FREEZE_END_CALLS] = hub_remote_call_end,
	[HUB_FREEZE_WRITE] = answer_write,
};

int64_t hub_freeze_run(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return answers[message->type] ? answers[message->type](owner, message, memory) : -EINVAL;
}
