/*
 * Threads that make calls for who holds their process, with registers that are not their own. What such a thread stops
 * for meanwhile is this file's alone, until it has its registers again. docs/internals/engines.md has the rules.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>

#include "hub/freeze/borrow.h"
#include "hub/freeze/hold.h"
#include "hub/remote/message.h"
#include "hub/run.h"
#include "hub/signal.h"
#include "hub/state.h"
#include "hub/task.h"
#include "hub/tracee.h"
#include "hub/trap/space.h"

#define CALL_NS 5000000000ull
#define CALL_STOP (SIGTRAP | 0x80)
#define STOPS_A_CALL 2

void hub_forget_borrow(struct task *task)
{
	free(task->borrow);
	task->borrow = NULL;
}

static int give_back(struct task *task)
{
	const struct hub_borrow *borrow = task->borrow;
	int err = borrow->has_own ? kymo_set_mask(task->tid, borrow->mask) : 0;

	if (!err && borrow->has_own)
		err = kymo_set_registers(task->tid, &borrow->own);
	task->knows_registers = false;
	hub_forget_borrow(task);
	return err;
}

static struct hub_borrow *begin_borrow(struct kymo_hub *hub, struct task *task)
{
	task->borrow = calloc(1, sizeof(*task->borrow));
	if (task->borrow) {
		task->stop = STOP_AWAY;
		task->knows_registers = false;
		task->stop_serial = ++hub->stops; /* who looks at it finds that it was away */
	}
	return task->borrow;
}

static int take_registers(pid_t tid, struct hub_borrow *borrow)
{
	struct kymo_tracee_facts facts;
	int err = kymo_get_registers(tid, &borrow->own);

	if (!err)
		err = kymo_get_facts(tid, KYMO_FACT_MASK, &facts);
	if (!err)
		borrow->mask = facts.mask;
	return err;
}

static int borrow(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct task *task = hub_held_task(hub, holding);
	struct hub_borrow *borrow;
	int err;

	if (!task || task->borrow)
		return -ESRCH;
	borrow = begin_borrow(hub, task);
	if (!borrow)
		return -ENOMEM;
	err = take_registers(task->tid, borrow);
	if (!err)
		err = kymo_set_registers(task->tid, &holding->message->registers);
	if (!err) {
		borrow->has_own = true;
		err = kymo_set_mask(task->tid, ~0ull);
	}
	if (err)
		give_back(task);
	return err;
}

int64_t hub_borrow_begin(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(borrow, holder, message, memory);
}

static int return_thread(struct kymo_hub *hub, void *argument)
{
	struct task *task = hub_held_task(hub, argument);

	return task && task->borrow ? give_back(task) : -ESRCH;
}

int64_t hub_borrow_end(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(return_thread, holder, message, memory);
}

/* ---- calls
 * --------------------------------------------------------------------------------------------------------------------
 */

bool hub_calls_at(const struct hub_process *process, uint64_t address)
{
	for (const struct task *task = process->tasks; task; task = task->in_process)
		if (task->borrow && task->borrow->n_stops && task->borrow->call_at == address)
			return true;
	return false;
}

/* With all of its signals blocked it would die of a breakpoint there. */
static bool is_at_breakpoint(const struct hub_process *process, uint64_t address)
{
	const struct hub_break *b =
		process->space && !process->space->is_parked ? hub_space_find(process->space, address) : NULL;

	return b && b->owners;
}

static int start_call(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct task *task = hub_held_task(hub, holding);
	bool is_as_is = holding->message->flags & HUB_CALL_AS_IS;
	struct user_regs_struct registers = holding->message->registers;

	if (!task || (!is_as_is && !task->borrow))
		return -ESRCH;
	if (is_as_is && kymo_get_registers(task->tid, &registers))
		return -ESRCH;
	if (is_at_breakpoint(task->process, registers.rip))
		return -EBUSY;
	if (!task->borrow && !begin_borrow(hub, task))
		return -ENOMEM;
	if ((!is_as_is && kymo_set_registers(task->tid, &registers)) || ptrace(PTRACE_SYSCALL, task->tid, 0, 0))
		return -ESRCH;
	task->borrow->call_at = registers.rip;
	task->borrow->n_stops = STOPS_A_CALL;
	task->state = TASK_RUNNING;
	return 0;
}

static bool is_call_over(const struct hub_holder *holder, struct hub_message *message)
{
	const struct task *task = hub_find(holder->hub, message->tid);

	return !task || !task->borrow || !task->borrow->n_stops;
}

static int end_call(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct task *task = hub_held_task(hub, holding);

	if (!task || !task->borrow || task->borrow->n_stops)
		return -ESRCH;
	if (!task->borrow->has_own)
		hub_forget_borrow(task);
	return kymo_get_registers(task->tid, &holding->message->registers);
}

int64_t hub_borrow_call(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	int err;

	if (hub_hold_is_in_callback(holder))
		return -EDEADLK;
	err = hub_hold_ask(start_call, holder, message, memory);
	if (!err)
		err = hub_hold_wait(holder, is_call_over, message, CALL_NS);
	return err ? err : hub_hold_ask(end_call, holder, message, memory);
}

void hub_borrow_leave(struct task *task)
{
	if (!task->borrow)
		return;
	task->borrow->is_left = true;
	if (!task->borrow->n_stops)
		give_back(task);
}

/* ---- what it stops for
 * ---------------------------------------------------------------------------------------------------------- */

/*
 * Signals that can't be blocked go where they belong. A stopped process makes its call nevertheless. So does one with a
 * filter of its own that wants it traced, but recorders borrow no thread that has a filter.
 */
static int signal_for(struct kymo_hub *hub, struct task *task, int status)
{
	if (status >> 16 || WSTOPSIG(status) == CALL_STOP)
		return 0;
	task->stop = STOP_SIGNAL;
	hub_signal_stopped(hub, task, WSTOPSIG(status));
	task->stop = STOP_AWAY;
	return task->signal;
}

bool hub_borrowed_stopped(struct kymo_hub *hub, struct task *task, int status)
{
	bool is_at_call = !(status >> 16) && WSTOPSIG(status) == CALL_STOP;
	int signal;

	if (!task->borrow)
		return false;
	if (status >> 16 == PTRACE_EVENT_EXIT || !task->borrow->n_stops) {
		hub_forget_borrow(task);
		return false;
	}
	task->state = TASK_STOPPED;
	task->was_interrupted = false;
	if (is_at_call && !--task->borrow->n_stops) {
		if (!task->borrow->is_left)
			return true;
		give_back(task); /* somebody else may hold it by now */
		hub_attend(hub, task);
		return true;
	}
	signal = signal_for(hub, task, status);
	task->state = TASK_RUNNING;
	ptrace(PTRACE_SYSCALL, task->tid, 0, signal);
	return true;
}
