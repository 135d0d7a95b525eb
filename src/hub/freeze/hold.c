/*
 * Processes that stand still for somebody who changes them: who is connected, or the hub's own process.
 * docs/internals/engines.md has the rules, joined.c the other side.
 *
 * A claim is a flag of each thread: it stands still in a PTRACE_EVENT_STOP and nowhere else, so whatever else it stops
 * for is told to engines as always, and left with an interrupt behind it. The claim of a process ends with the
 * connection, so its holder can't leave anything behind, whatever becomes of it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/backoff.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/freeze/borrow.h"
#include "hub/freeze/hold.h"
#include "hub/freeze/holder.h"
#include "hub/hub.h"
#include "hub/remote/message.h"
#include "hub/remote/proof.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/task.h"
#include "hub/tracee.h"
#include "hub/trap/space.h"
#include "hub/wait.h"
#include "procfs/info.h"
#include "procfs/memory.h"

#define STOP_NS 2000000000ull
#define OTHERS_NS (2 * HUB_ANSWER_MS * 1000000ull)
#define LOOK_NS 50000000 /* how often it is looked whether the holder is there */
#define TAKE_TRIES 20
#define SPINS 8
#define TAKE_PAUSE_NS 1000000

int hub_hold_ask(int (*function)(struct kymo_hub *hub, void *argument), struct hub_holder *holder,
		 struct hub_message *message, uint8_t *memory)
{
	struct holding holding = { .holder = holder, .message = message, .memory = memory };

	return hub_call(holder->hub, function, &holding);
}

static struct hub_process *held_process(struct kymo_hub *hub, const struct hub_holder *holder)
{
	struct hub_process *process = holder->held ? hub_find_process(hub, holder->held) : NULL;

	return process && process->holder == holder ? process : NULL;
}

bool hub_hold_is_in_callback(const struct hub_holder *holder)
{
	return hub_is_own_thread(holder->hub) && holder->requests >= 0;
}

bool hub_is_still(const struct task *task)
{
	return task->is_claimed && task->state == TASK_STOPPED && (task->stop == STOP_TRAP || task->stop == STOP_AWAY);
}

/* A request about a thread that has stopped a moment ago is the dearest part of a stop. Engines and breakpoints may
 * change registers, too. */
void hub_hold_note(struct task *task, const struct user_regs_struct *registers)
{
	const struct hub_holder *holder = task->process->holder;

	if (!task->is_claimed || task->borrow || !holder || !holder->takes || task->engines.n || task->process->space)
		return;
	task->told = *registers;
	task->knows_registers = true;
}

static int read_registers(const struct task *task, struct user_regs_struct *ret)
{
	if (!task->knows_registers)
		return kymo_get_registers(task->tid, ret);
	*ret = task->told;
	return 0;
}

/* It won't run any more in its program. */
static bool is_past(const struct task *task)
{
	return task->state == TASK_ENDING || task->was_death_told ||
	       (task->state == TASK_STOPPED && task->stop == STOP_ENDING);
}

struct task *hub_held_task(struct kymo_hub *hub, const struct holding *holding)
{
	struct hub_process *process = held_process(hub, holding->holder);
	struct task *task = process ? hub_find(hub, holding->message->tid) : NULL;

	return task && task->process == process && hub_is_still(task) ? task : NULL;
}

/* ---- waiting, on the holder's thread
 * ----------------------------------------------------------------------------------------- */

/* It has asked, and waits for the reply: whatever comes from it is its end. */
static bool is_there(const struct hub_holder *holder)
{
	struct pollfd look = { .fd = holder->requests, .events = POLLIN };

	return poll(&look, 1, 0) == 0;
}

/* The first one that is not. */
static bool are_all_still(const struct hub_holder *holder, struct hub_message *message)
{
	const struct hub_process *process = held_process(holder->hub, holder);

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process) {
		if (!task->is_claimed || hub_is_still(task) || is_past(task))
			continue;
		message->tid = task->tid;
		return false;
	}
	return true;
}

/* Look at those that are to stop, each by its id: in a wait for any thread the kernel looks at all, and each stops once
 * or twice. How many have told something. Who was interrupted first is looked at first. */
static int sweep(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	const struct hub_process *process = held_process(hub, holding->holder);
	KYMO_VEC(pid_t) tids = { 0 };
	int n = 0;

	hub_wait_for_spared(hub);
	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		if (task->is_claimed && !hub_is_still(task) && !is_past(task) && (!task->has_maker || task->is_newborn))
			kymo_vec_push(&tids, task->tid);
	for (size_t i = tids.n; i-- > 0 && !hub->early.n;) {
		int status;

		if (!hub_look(hub, tids.items[i], &status)) {
			if (holding->is_patient)
				break; /* the others come later still, and need the processor more than we */
			continue;
		}
		hub_dispatch(hub, tids.items[i], status); /* gives the lock up for callbacks */
		hub_wait_for_spared(hub);
		n++;
	}
	kymo_vec_deinit(&tids);
	return n;
}

/* The same for the one thread that makes a call. */
static int look_at_one(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	int status;

	hub_wait_for_spared(hub);
	if (hub->early.n || !hub_look(hub, holding->message->tid, &status))
		return 0;
	hub_dispatch(hub, holding->message->tid, status);
	hub_wait_for_spared(hub);
	return 1;
}

/*
 * What has to be done for it by who waits: to look at its threads, and, where the hub's thread is this one, at all
 * others, as it may be one of them that is waited for. Those of a tree get their share in any case, others when nothing
 * has come for some `spins`. Whether anything has happened.
 */
static bool help(struct hub_holder *holder,
		 bool (*is_done)(const struct hub_holder *holder, struct hub_message *message),
		 struct hub_message *message, unsigned int spins)
{
	struct holding holding = { .holder = holder, .message = message, .is_patient = holder->takes && spins < SPINS };
	bool is_here = hub_is_own_thread(holder->hub), has_happened = false;

	if (is_done == are_all_still)
		has_happened = hub_call(holder->hub, sweep, &holding);
	else if (is_here)
		has_happened = hub_call(holder->hub, look_at_one, &holding);
	if (is_here)
		hub_flush(holder->hub);
	if (!is_here || (!holder->hub->waits_for_any && (has_happened || spins < SPINS)))
		return has_happened;
	return hub_pump(holder->hub) || has_happened;
}

static bool ask(const struct hub_holder *holder,
		bool (*is_done)(const struct hub_holder *holder, struct hub_message *message),
		struct hub_message *message)
{
	bool done;

	pthread_mutex_lock(&holder->hub->lock);
	done = is_done(holder, message);
	pthread_mutex_unlock(&holder->hub->lock);
	return done;
}

int hub_hold_wait(struct hub_holder *holder,
		  bool (*is_done)(const struct hub_holder *holder, struct hub_message *message),
		  struct hub_message *message, uint64_t timeout_ns)
{
	uint64_t now = kymo_now_ns(), deadline_ns = now + timeout_ns, latest_ns = deadline_ns + OTHERS_NS,
		 look_ns = now + LOOK_NS;
	pid_t awaited = message->tid;

	for (unsigned int spins = 0; !ask(holder, is_done, message); spins++) {
		uint64_t before_ns = now;

		if (help(holder, is_done, message, spins))
			spins = 0;
		else
			kymo_back_off(spins);
		if (holder->takes && message->tid != awaited) { /* each gets that time, as there may be thousands */
			awaited = message->tid;
			deadline_ns = now + timeout_ns;
			latest_ns = deadline_ns + OTHERS_NS;
		}
		now = kymo_now_ns();
		if (now - before_ns > LOOK_NS) /* somebody who is connected was told something, and did not answer: that
						  is not the process' time */
			deadline_ns =
				deadline_ns + now - before_ns < latest_ns ? deadline_ns + now - before_ns : latest_ns;
		if (now > deadline_ns && !ask(holder, is_done, message))
			return -ETIMEDOUT;
		if (now < look_ns)
			continue;
		if (!is_there(holder))
			return -EPIPE;
		look_ns = now + LOOK_NS;
	}
	return 0;
}

/* ---- holding
 * ------------------------------------------------------------------------------------------------------------------ */

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
	n = hub_seize_threads(hub, pid);
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
	    hub_seize(hub, tid, process->pid, &task) || task->process != process || is_past(task))
		return;
	process->second_held = tid;
	claim_task(hub, task);
}

static int claim_first(struct kymo_hub *hub, struct hub_process *process, pid_t second)
{
	struct task *task;
	int err = hub_seize(hub, process->pid, process->pid, &task);

	if (err || is_past(task))
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
	return process ? hub_proof_check_guest(holder->proof, process, pid) : -ESRCH;
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
			err = hub_hold_wait(holder, are_all_still, message, STOP_NS);
		is_more = n > 0 || (n == 0 && !err && !is_sure && has_untraced(holder));
		is_sure |= n == 0;
	} while (!err && is_more);
	err = n == -EAGAIN ? -ESRCH : n < 0 ? n : err;
	if (err == -ETIMEDOUT && ask(holder, is_held, message))
		err = -EAGAIN;
	/* One that is held already goes on to be; and what is on this thread may have been claimed for a reason that
	 * lasts. */
	if (err && holder->held == pid && holder->requests >= 0)
		hub_hold_drop(holder);
	return err;
}

/* ---- telling
 * ------------------------------------------------------------------------------------------------------------------ */

static int look(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	const struct hub_process *process = held_process(hub, holding->holder);
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
	return message->size == HUB_HELD_MAX * sizeof(struct hub_held) ? hub_hold_ask(look, holder, message, memory)
								       : -EINVAL;
}

static int set(struct kymo_hub *hub, void *argument)
{
	const struct holding *holding = argument;
	struct task *task = hub_held_task(hub, holding);

	if (!task || task->borrow)
		return -ESRCH;
	task->knows_registers = false;
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
	struct hub_process *process = held_process(hub, holding->holder);
	const struct hub_memory *memory;

	if (process && process->space)
		return hub_space_write_text(hub, process, holding->message->word, holding->memory,
					    holding->message->size);
	memory = process ? hub_memory_of(process) : NULL;
	return memory ? kymo_memory_write(&memory->opened, holding->message->word, holding->memory,
					  holding->message->size)
		      : -ESRCH;
}

bool hub_hold_is_plain(struct hub_holder *holder)
{
	const struct hub_process *process;
	bool is_plain;

	pthread_mutex_lock(&holder->hub->lock);
	process = held_process(holder->hub, holder);
	is_plain = process && !process->space;
	pthread_mutex_unlock(&holder->hub->lock);
	return is_plain;
}

static int64_t answer_write(struct hub_holder *holder, struct hub_message *message, uint8_t *memory)
{
	return hub_hold_ask(write_memory, holder, message, memory);
}

/* ---- the end of a hold
 * ----------------------------------------------------------------------------------------------------------- */

void hub_hold_end(struct kymo_hub *hub, struct hub_holder *holder)
{
	struct hub_process *process = held_process(hub, holder);

	holder->held = 0;
	hub_hold_forgo(hub, holder);
	if (!process)
		return;
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->is_claimed = process->is_owed;
		hub_borrow_leave(task);
		hub_kick(hub, task);
	}
	process->holder = NULL;
	if (process->is_owed)
		hub_hold_take(process);
	else
		hub_put_process(hub, process);
}

static int drop(struct kymo_hub *hub, void *argument)
{
	hub_hold_end(hub, argument);
	return 0;
}

void hub_hold_drop(struct hub_holder *holder)
{
	hub_call(holder->hub, drop, holder);
	hub_flush(holder->hub);
}

/* ---- what is asked for
 * ------------------------------------------------------------------------------------------------------------- */

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
