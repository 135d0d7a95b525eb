/* What holders ask for: that a process stands still, and what is done to its threads then. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "hub/freeze/answer.h"
#include "hub/freeze/borrow.h"
#include "hub/freeze/hold.h"
#include "hub/hub.h"
#include "hub/remote/guest.h"
#include "hub/remote/message.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/thread/adopt.h"
#include "hub/thread/claim.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/space.h"
#include "procfs/info.h"
#include "procfs/memory.h"

#define STOP_NS 2000000000ull
#define TAKE_TRIES 20
#define TAKE_PAUSE_NS 1000000

/* ---- holding --------------------------------------------------------------------------------- */

static void claim_task(struct kymo_hub *hub, struct task *task)
{
	if (task->is_claimed)
		return;
	task->is_claimed = true;
	hub_kick(hub, task);
}

/* All that there are; how many are new to the hub. */
static int claim_all(struct kymo_hub *hub, struct hub_process *process)
{
	pid_t pid = process->pid;
	int n;

	for (struct task *task = process->tasks; task; task = task->in_process)
		claim_task(hub, task);
	n = !process->holder->takes && hub_knows_threads(hub, pid) ? 0 : hub_seize_threads(hub, pid);
	process = hub_find_process(hub, pid); /* where memory is out, one without threads has gone */
	for (struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		hub_kick(hub, task); /* new ones are claimed already */
	return n;
}

/* One that makes system calls where the first thread had better not. It may have ended, or be somebody else's: the
 * holder does without it. */
static void claim_second(struct kymo_hub *hub, struct hub_process *process, pid_t tid)
{
	struct kymo_process_info info;
	struct task *task;

	process->second_held = 0;
	if (tid <= 0 || tid == process->pid || !kymo_process_peek(tid, &info) || info.tgid != process->pid ||
	    hub_seize(hub, tid, process->pid, &task) || task->process != process || hub_hold_is_past(task))
		return;
	process->second_held = tid;
	claim_task(hub, task);
}

static int claim_first(struct kymo_hub *hub, struct hub_process *process, pid_t second)
{
	struct task *task;
	int err = hub_seize(hub, process->pid, process->pid, &task);

	if (err || hub_hold_is_past(task))
		return err ? err : -ESRCH;
	claim_task(hub, task);
	claim_second(hub, process, second);
	return 0;
}

/* Of a client; the hub's own process needs none. */
static int check_proof(struct kymo_hub *hub, const struct hub_holder *holder, pid_t pid)
{
	struct hub_process *process = hub_find_process(hub, pid);

	if (!holder->guest)
		return 0;
	return process ? holder->guest->hooks->check_proof(holder->proof, process, pid) : -ESRCH;
}

static int claim(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct hub_holder *holder = holding->holder;
	bool is_first = holding->message->flags & HUB_HOLD_FIRST;
	pid_t second = holding->message->word <= INT32_MAX ? (pid_t)holding->message->word : 0;
	struct hub_process *process = hub_find_process(hub, holding->message->tid);
	int n, err;

	if (holder->takes)
		process = hub_get_process(hub, holding->message->tid);
	if (!process || (!process->tasks && !holder->takes))
		return holder->takes ? -ENOMEM : -ENOENT;
	if (process->keeper && process->keeper != holder && process->keeper->is_closed)
		return -EBUSY;
	if ((process->holder && process->holder != holder) || (holder->held && holder->held != process->pid)) {
		hub_put_process(hub, process);
		return -EBUSY;
	}
	err = check_proof(hub, holder, process->pid);
	if (err)
		return err;
	process->holder = holder;
	process->is_first_held = is_first;
	holder->held = process->pid;
	n = is_first ? claim_first(hub, process, second) : claim_all(hub, process);
	err = n < 0 ? n : check_proof(hub, holder, holder->held); /* seizing may have waited for an exec */
	return err ? err : n;
}

/* Threads that were made so that nobody is told (CLONE_UNTRACED). */
static bool has_untraced(struct hub_holder *holder)
{
	bool has;

	pthread_mutex_lock(&holder->hub->lock);
	has = hub_lacks_threads(holder->hub, holder->held);
	pthread_mutex_unlock(&holder->hub->lock);
	return has;
}

static bool is_held(const struct hub_holder *holder, struct hub_message *message)
{
	const struct task *task = hub_find(holder->hub, message->tid);

	return task && hub_is_held(task);
}

/* Who traces a thread that is to be taken may be about to let go of it; and what has become another program may not
 * have been dealt with. Until all are the hub's, nobody is interrupted. */
static int claim_patiently(struct hub_holder *holder, struct hub_message *message)
{
	uint64_t deadline = kymo_now_ns() + STOP_NS;
	int n = hub_hold_ask(claim, holder, message, NULL);

	for (int i = 0; (n == -EBUSY && holder->takes && i < TAKE_TRIES) || (n == -EAGAIN && kymo_now_ns() < deadline);
	     i++) {
		if (n == -EBUSY || !hub_is_own_thread(holder->hub))
			nanosleep(&(struct timespec){ 0, TAKE_PAUSE_NS }, NULL);
		else
			hub_pump(holder->hub);
		n = hub_hold_ask(claim, holder, message, NULL);
	}
	if (n >= 0)
		hub_flush(holder->hub);
	return n;
}

/* Who stops makes no thread any more, so when all have stopped and no other is found, none runs. */
static int64_t answer_hold(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	bool is_sure = message->flags & HUB_HOLD_FIRST, is_more;
	pid_t pid = message->tid;
	int n, err = 0;

	if (hub_hold_is_in_callback(holder))
		return -EDEADLK; /* for which all wait */
	do {
		message->tid = pid;
		n = claim_patiently(holder, message);
		if (n >= 0)
			err = hub_hold_wait(holder, hub_hold_are_all_still, message, STOP_NS);
		is_more = n > 0 || (n == 0 && !err && !is_sure && has_untraced(holder));
		is_sure |= n == 0;
	} while (!err && is_more);
	err = n == -EAGAIN ? -ESRCH : n < 0 ? n : err;
	if (err == -ETIMEDOUT && hub_hold_is_done(holder, is_held, message))
		err = -EAGAIN;
	/* One that is held already goes on to be; and what is on this thread may have been claimed for a reason that
	 * lasts. */
	if (err && holder->held == pid && holder->requests >= 0)
		hub_hold_drop(holder);
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
	const struct holding *holding = argument;
	const struct hub_process *process = hub_held_process(hub, holding->holder);
	struct hub_held *held = (struct hub_held *)(void *)holding->memory;
	uint64_t skip = holding->message->word;
	size_t n = 0;
	int err;

	if (!process)
		return -ESRCH;
	memset(holding->memory, 0, HUB_DATA_MAX);
	for (const struct task *task = process->tasks; task && n < HUB_HELD_MAX; task = task->in_process) {
		if (!hub_is_still(task))
			continue;
		if (skip) {
			skip--;
			continue;
		}
		err = read_registers(task, &held[n].registers);
		if (err == -ENOTSUP && holding->holder->requests < 0)
			err = 0; /* 32-bit code has registers of its own, of which nothing is needed */
		if (!err && holding->holder->requests >= 0) /* an own one asks for them by itself */
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

static int64_t answer_held(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return message->size == HUB_HELD_MAX * sizeof(struct hub_held)
		       ? hub_hold_ask(look_at_answer, holder, message, memory)
		       : -EINVAL;
}

static int set(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct task *task = hub_held_task(hub, holding);

	if (!task || task->borrow)
		return -ESRCH;
	task->traps.knows_registers = false;
	return kymo_set_registers(task->tid, &holding->message->registers);
}

static int64_t answer_set(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(set, holder, message, memory);
}

static int read_xstate(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	const struct task *task = hub_held_task(hub, holding);
	size_t size;
	int err;

	memset(holding->memory, 0, HUB_DATA_MAX);
	err = task ? kymo_get_xstate(task->tid, holding->memory, HUB_DATA_MAX, &size) : -ESRCH;
	if (!err)
		holding->message->word = size;
	return err;
}

static int64_t answer_xstate(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return message->size == HUB_DATA_MAX ? hub_hold_ask(read_xstate, holder, message, memory) : -EINVAL;
}

static int write_memory(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct hub_process *process = hub_held_process(hub, holding->holder);
	const struct hub_memory *memory;

	if (process && process->space)
		return hub_space_write_text(hub, process, holding->message->word, holding->memory,
					    holding->message->size);
	memory = process ? hub_memory_of(process) : NULL;
	return memory ? kymo_memory_write(&memory->opened, holding->message->word, holding->memory,
					  holding->message->size)
		      : -ESRCH;
}

static int64_t answer_write(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(write_memory, holder, message, memory);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static int64_t (*const answers[HUB_N_TYPES])(struct hub_holder *holder, struct hub_message *message,
					     uint8_t *memory) = {
	[HUB_HOLD] = answer_hold,
	[HUB_HELD] = answer_held,
	[HUB_HOLD_SET] = answer_set,
	[HUB_HOLD_XSTATE] = answer_xstate,
	[HUB_HOLD_BORROW] = hub_borrow_begin,
	[HUB_HOLD_CALL] = hub_borrow_call,
	[HUB_HOLD_RETURN] = hub_borrow_end,
	[HUB_HOLD_WRITE] = answer_write,
};

int64_t hub_hold_run(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return answers[message->type] ? answers[message->type](holder, message, memory) : -EINVAL;
}
