/*
 * Threads that make calls for the owner of their process, with registers that are not their own. What such a thread
 * stops for meanwhile is this file's alone, until it has its registers again. docs/internals/engines.md has the rules.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>

#include "arch/registers.h"
#include "hub/freeze/remote_call.h"
#include "hub/freeze/freeze.h"
#include "hub/remote/message.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/states.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/break.h"

#define CALL_NS 5000000000ull
#define CALL_STOP (SIGTRAP | 0x80)
#define STOPS_A_CALL 2
#define STOPS_A_BATCH 1
#define N_SIGNALS 64

static struct hub_remote_call *create_call(struct kymo_hub *hub, struct task *task)
{
	task->remote_call = calloc(1, sizeof(*task->remote_call));
	if (task->remote_call) {
		hub_change_stop(task, STOP_AWAY);
		task->traps.knows_registers = false;
		task->stop_serial = ++hub->counts.stops; /* the next look at the thread finds that it was away */
	}
	return task->remote_call;
}

/* Calls leave them as they are. But they cannot be read while the thread makes one. */
static void take_xstate(const struct task *task, struct hub_remote_call *call)
{
	call->xstate = task->engines.n ? malloc(KYMO_XSTATE_MAX) : NULL;
	if (!call->xstate || !kymo_get_xstate(task->tid, call->xstate, KYMO_XSTATE_MAX, &call->xstate_size))
		return;
	free(call->xstate);
	call->xstate = NULL;
}

static int take_registers(pid_t tid, struct hub_remote_call *call)
{
	struct kymo_tracee_facts facts;
	int err = kymo_get_registers(tid, &call->own);

	if (!err)
		err = kymo_get_facts(tid, KYMO_FACT_MASK, &facts);
	if (!err)
		call->mask = facts.mask;
	return err;
}

static int begin_calls(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	struct task *task = hub_frozen_task(hub, job);
	struct hub_remote_call *call;
	int err;

	if (!task || task->remote_call)
		return -ESRCH;
	call = create_call(hub, task);
	if (!call)
		return -ENOMEM;
	take_xstate(task, call);
	err = take_registers(task->tid, call);
	if (!err)
		err = kymo_set_registers(task->tid, &job->message->registers);
	if (!err) {
		call->has_own = true;
		err = kymo_set_mask(task->tid, ~0ull);
	}
	if (err)
		hub_give_back(task);
	return err;
}

int64_t hub_remote_call_begin(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return hub_freeze_ask(begin_calls, owner, message, memory);
}

static int return_thread(struct kymo_hub *hub, void *argument)
{
	struct task *task = hub_frozen_task(hub, argument);

	return task && task->remote_call ? hub_give_back(task) : -ESRCH;
}

int64_t hub_remote_call_end(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	return hub_freeze_ask(return_thread, owner, message, memory);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* With all of its signals blocked it would die of a breakpoint there. */
static bool is_at_breakpoint(const struct hub_process *process, uint64_t address)
{
	const struct hub_break *b =
		process->space && !process->space->is_disarmed ? hub_space_find(process->space, address) : NULL;

	return b && b->owners;
}

/* A batch ends with a signal, which is let in for that alone. */
static int prepare(struct task *task, const struct hub_message *message, uint64_t at)
{
	struct hub_remote_call *call = task->remote_call;
	const int signal = message->flags & HUB_CALL_BATCH ? (int)message->event : 0;
	int err = 0;

	if (signal != call->signal)
		err = kymo_set_mask(task->tid, signal ? ~(1ull << (signal - 1)) : ~0ull);
	call->call_at = at;
	call->call_end = message->word;
	call->signal = signal;
	call->n_stops = signal ? STOPS_A_BATCH : STOPS_A_CALL;
	return err;
}

static bool is_fit(const struct freeze_job *job)
{
	const struct hub_message *message = job->message;

	return !(message->flags & HUB_CALL_BATCH) || (!(message->flags & HUB_CALL_AS_IS) && job->owner->requests < 0 &&
						      message->event && message->event <= N_SIGNALS);
}

static int start_call(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	struct task *task = hub_frozen_task(hub, job);
	bool is_as_is = job->message->flags & HUB_CALL_AS_IS;
	struct user_regs_struct registers = job->message->registers;
	int err;

	if (!is_fit(job))
		return -EINVAL;
	if (!task || (!is_as_is && !task->remote_call))
		return -ESRCH;
	if (is_as_is && kymo_get_registers(task->tid, &registers))
		return -ESRCH;
	if (is_at_breakpoint(task->process, registers.rip))
		return -EBUSY;
	if (!task->remote_call && !create_call(hub, task))
		return -ENOMEM;
	err = is_as_is ? 0 : kymo_set_registers(task->tid, &registers);
	if (!err)
		err = prepare(task, job->message, registers.rip);
	if (err || ptrace(task->remote_call->signal ? PTRACE_CONT : PTRACE_SYSCALL, task->tid, 0, 0)) {
		task->remote_call->n_stops = 0;
		return -ESRCH;
	}
	hub_set_state(task, TASK_RUNNING);
	return 0;
}

static bool is_call_over(const struct hub_owner *owner, struct hub_message *message)
{
	const struct task *task = hub_find(owner->hub, message->tid);

	return !task || !task->remote_call || !task->remote_call->n_stops;
}

static int end_call(struct kymo_hub *hub, void *argument)
{
	const struct freeze_job *job = argument;
	struct task *task = hub_frozen_task(hub, job);

	if (!task || !task->remote_call || task->remote_call->n_stops)
		return -ESRCH;
	if (!task->remote_call->has_own)
		hub_forget_remote_call(task);
	return kymo_get_registers(task->tid, &job->message->registers);
}

int64_t hub_remote_call_make(struct hub_owner *owner, struct hub_message *message, uint8_t *memory)
{
	int err;

	if (hub_freeze_is_in_callback(owner))
		return -EDEADLK;
	err = hub_freeze_ask(start_call, owner, message, memory);
	if (!err)
		err = hub_freeze_wait(owner, is_call_over, message, CALL_NS);
	return err ? err : hub_freeze_ask(end_call, owner, message, memory);
}
