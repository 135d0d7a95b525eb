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
#include "hub/state.h"
#include "hub/thread/claim.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/break.h"

#define CALL_NS 5000000000ull
#define CALL_STOP (SIGTRAP | 0x80)
#define STOPS_A_CALL 2

static struct hub_borrow *begin_borrow(struct kymo_hub *hub, struct task *task)
{
	task->borrow = calloc(1, sizeof(*task->borrow));
	if (task->borrow) {
		task->stop = STOP_AWAY;
		task->traps.knows_registers = false;
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
		hub_give_back(task);
	return err;
}

int64_t hub_borrow_begin(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(borrow, holder, message, memory);
}

static int return_thread(struct kymo_hub *hub, void *argument)
{
	struct task *task = hub_held_task(hub, argument);

	return task && task->borrow ? hub_give_back(task) : -ESRCH;
}

int64_t hub_borrow_end(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(return_thread, holder, message, memory);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* With all of its signals blocked it would die of a breakpoint there. */
static bool is_at_breakpoint(const struct hub_process *process, uint64_t address)
{
	const struct hub_break *b =
		process->space && !process->space->is_disarmed ? hub_space_find(process->space, address) : NULL;

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
