/* Debug registers: four a thread, each an engine's. A hit is told to that one, after its SIGTRAP was taken from the
 * thread. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

#include "arch/trap.h"
#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/trap/keeper.h"
#include "hub/trap/watch.h"
#include "kymo/engine.h"

static uint64_t peek(const struct task *task, unsigned int number)
{
	long value;

	errno = 0;
	value = ptrace(PTRACE_PEEKUSER, task->tid, kymo_watch_register(number), 0);
	return errno ? 0 : (uint64_t)value;
}

static int poke(const struct task *task, unsigned int number, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, task->tid, kymo_watch_register(number), value) ? -errno : 0;
}

/* ---- taking a slot --------------------------------------------------------------------------- */

static int choose_slot(const struct task *task, uint64_t control, unsigned int *slot_ret)
{
	bool is_programs_own = false;

	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++) {
		const struct hub_watch *watch = &task->traps.watches[slot];

		if (!watch->is_on && !kymo_watch_is_on(control, slot)) {
			*slot_ret = slot;
			return 0;
		}
		is_programs_own |= !watch->is_on;
	}
	return is_programs_own ? -EBUSY : -ENOSPC;
}

/* Noted before it is armed. */
static int arm(struct kymo_hub *hub, struct task *task, unsigned int slot, uint64_t control, uint64_t address)
{
	bool is_new = task->traps.watch_entry < 0;
	int err;

	if (is_new)
		task->traps.watch_entry = hub_note_watches(hub, task->tid);
	if (task->traps.watch_entry < 0)
		return task->traps.watch_entry;
	err = poke(task, slot, address);
	if (!err)
		err = poke(task, KYMO_WATCH_CONTROL, control);
	if (err && is_new) {
		hub_strike(hub, task->traps.watch_entry);
		task->traps.watch_entry = -1;
	}
	return err;
}

struct watch_request {
	struct kymo_engine *engine;
	enum kymo_watch_kind kind;
	uint64_t address;
	size_t size;
	unsigned int slot;
};

static int check_stopped(const struct kymo_engine *engine)
{
	if (engine->is_detached || !engine->task || engine->task->state == TASK_ENDING)
		return -ESRCH;
	return engine->task->state == TASK_STOPPED ? 0 : -EAGAIN;
}

/* The kernel copies the control register to a new thread, and no address: that reads as 0. */
static uint64_t without_inherited(const struct task *task, uint64_t control)
{
	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++)
		if (kymo_watch_is_on(control, slot) && !task->traps.watches[slot].is_on && !peek(task, slot))
			control = kymo_watch_off(control, slot);
	return control;
}

static int take_slot(struct kymo_hub *hub, void *argument)
{
	struct watch_request *request = argument;
	struct task *task = request->engine->task;
	int err = check_stopped(request->engine);
	uint64_t control;

	if (err)
		return err;
	if (!request->engine->may_break)
		return -EPERM;
	hub_watches_clear(hub, task, false);
	control = without_inherited(task, peek(task, KYMO_WATCH_CONTROL));
	err = choose_slot(task, control, &request->slot);
	if (!err)
		err = arm(hub, task, request->slot,
			  kymo_watch_on(control, request->slot, request->kind, (unsigned int)request->size),
			  request->address);
	if (err)
		return err;
	task->traps.watches[request->slot] = (struct hub_watch){ request->engine, true, request->address };
	task->traps.had_watches = true;
	return 0;
}

static const enum kymo_watch_kind kinds[] = {
	[KYMO_WATCH_EXECUTION] = KYMO_WATCH_ON_EXECUTION,
	[KYMO_WATCH_WRITE] = KYMO_WATCH_ON_WRITE,
	[KYMO_WATCH_ACCESS] = KYMO_WATCH_ON_ACCESS,
};

bool hub_watch_can(enum kymo_watch watch, uint64_t address, size_t size)
{
	return (unsigned int)watch < sizeof(kinds) / sizeof(kinds[0]) && kymo_watch_can(kinds[watch], address, size);
}

int hub_local_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		    unsigned int *slot_ret)
{
	struct watch_request argument = { .engine = engine, .kind = kinds[watch], .address = address, .size = size };
	int err = hub_call(engine->hub, take_slot, &argument);

	if (!err)
		*slot_ret = argument.slot;
	return err;
}

static void turn_off(struct task *task, unsigned int slot)
{
	poke(task, KYMO_WATCH_CONTROL, kymo_watch_off(peek(task, KYMO_WATCH_CONTROL), slot));
	task->traps.watches[slot] = (struct hub_watch){ 0 };
}

static void strike_if_none(struct kymo_hub *hub, struct task *task)
{
	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++)
		if (task->traps.watches[slot].is_on)
			return;
	if (task->traps.watch_entry >= 0)
		hub_strike(hub, task->traps.watch_entry);
	task->traps.watch_entry = -1;
}

static int drop_watch(struct kymo_hub *hub, void *argument)
{
	const struct watch_request *request = argument;
	struct task *task = request->engine->task;
	int err = check_stopped(request->engine);

	if (err && err != -EAGAIN)
		return err;
	if (request->slot >= KYMO_WATCH_SLOTS || task->traps.watches[request->slot].engine != request->engine)
		return -ENOENT;
	if (err) { /* nothing is told of it any more, and it is turned off at the next stop */
		task->traps.watches[request->slot].engine = NULL;
		task->traps.has_stale_watch = true;
		hub_kick(hub, task);
		return 0;
	}
	turn_off(task, request->slot);
	strike_if_none(hub, task);
	return 0;
}

int hub_local_unwatch(struct kymo_engine *engine, unsigned int slot)
{
	return hub_call(engine->hub, drop_watch, &(struct watch_request){ .engine = engine, .slot = slot });
}

/* ---- letting go ------------------------------------------------------------------------------ */

void hub_watches_drop(struct kymo_engine *engine)
{
	struct task *task = engine->task;

	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++) {
		if (task->traps.watches[slot].engine != engine)
			continue;
		task->traps.watches[slot].engine = NULL;
		task->traps.has_stale_watch = true;
	}
}

void hub_watches_clear(struct kymo_hub *hub, struct task *task, bool all)
{
	if (!task->traps.had_watches || !(all || task->traps.has_stale_watch))
		return;
	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++)
		if (task->traps.watches[slot].is_on && (all || !task->traps.watches[slot].engine))
			turn_off(task, slot);
	task->traps.has_stale_watch = false;
	strike_if_none(hub, task);
}

void hub_watches_forget(struct kymo_hub *hub, struct task *task)
{
	memset(task->traps.watches, 0, sizeof(task->traps.watches));
	task->traps.had_watches = task->traps.has_stale_watch = false;
	strike_if_none(hub, task);
}

/* ---- hits ------------------------------------------------------------------------------------ */

/* Which have been hit, as bits, except those of other tracers: ours, and those that are off, which were ours when they
 * were hit. */
static unsigned int hits_of(const struct task *task)
{
	uint64_t status = peek(task, KYMO_WATCH_STATUS), control = peek(task, KYMO_WATCH_CONTROL);
	unsigned int hits = 0;

	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++)
		if (status >> slot & 1 && (task->traps.watches[slot].is_on || !kymo_watch_is_on(control, slot)))
			hits |= 1u << slot;
	poke(task, KYMO_WATCH_STATUS, 0);
	return hits;
}

bool hub_watch_is_owner(const struct kymo_engine *engine, const void *data)
{
	const struct kymo_signal_report *report = data;

	return engine->task->traps.watches[report->slot].engine == engine;
}

/* An instruction that is watched was told of before the breakpoint on it, and comes again when that is stepped over. */
static bool is_behind_breakpoint(const struct task *task, unsigned int slot)
{
	return task->traps.is_at_breakpoint && task->traps.told.rip == task->traps.watches[slot].address;
}

bool hub_watch_report(const struct task *task, unsigned int slot, struct kymo_signal_report *ret)
{
	if (!task->traps.watches[slot].engine || is_behind_breakpoint(task, slot))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->address = task->traps.watches[slot].address;
	ret->info.si_signo = SIGTRAP;
	ret->info.si_code = TRAP_HWBKPT;
	ret->info.si_addr = (void *)ret->address;
	ret->kind = KYMO_EVENT_SIGNAL;
	ret->verdict = KYMO_SIGNAL_IGN;
	ret->trap = KYMO_TRAP_WATCH;
	ret->slot = slot;
	return true;
}

bool hub_watch_stopped(struct kymo_hub *hub, struct task *task, bool is_step, unsigned int *hits_ret, int *group_ret)
{
	unsigned int hits;
	siginfo_t info;

	*hits_ret = 0;
	if (!task->traps.had_watches || ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) ||
	    (info.si_code != TRAP_HWBKPT && !is_step))
		return false;
	hits = hits_of(task);
	if (!hits)
		return false;
	if (hub_swallow(hub, task, group_ret))
		*hits_ret = hits;
	return true;
}
