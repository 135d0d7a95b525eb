/*
 * Spaces: memories with breakpoints in them.
 *
 * Bytes are written one at a time, and each write is complete: a thread that runs there executes the breakpoint or the
 * instruction. So no thread has to be stopped to insert or remove a breakpoint, but the hub must trace all threads.
 * What is compared before it is written may have been changed by the program. trap/disarm.c has the threads.
 *
 * A program may unmap code that has breakpoints, and map something else there. So what is mapped is compared with what
 * was, before a byte goes back. A breakpoint whose code has gone is void: nothing is written at its address any more,
 * until an engine inserts it again.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/plan.h"
#include "arch/trap.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "base/page.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/adopt.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/disarm.h"
#include "hub/trap/pad.h"
#include "hub/trap/put.h"
#include "hub/trap/space.h"
#include "hub/trap/text.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/memory.h"
#include "wire/shared.h"

#define LINGER_NS 5000000000ull /* longer than a child waits for its maker's event */
#define LATE_NS 2000000000ull

/* ---- making one ------------------------------------------------------------------------------ */

static void join_space(struct hub_process *process, struct hub_space *space)
{
	process->space = space;
	space->n_processes++;
}

static struct hub_space *make_space(struct kymo_hub *hub, struct hub_process *process)
{
	struct hub_memory *memory = hub_memory_of(process);
	struct hub_space *space = memory ? calloc(1, sizeof(*space)) : NULL;

	if (!space)
		return NULL;
	atomic_fetch_add(&memory->refs, 1);
	space->memory = memory;
	space->next = hub->spaces;
	hub->spaces = space;
	join_space(process, space);
	return space;
}

/* All threads, and none of them is making another one: each has been stopped since it was the hub's. */
static int seize_all(struct kymo_hub *hub, const struct hub_process *process)
{
	int n;

	do {
		n = hub_seize_threads(hub, process->pid);
		if (n > 0)
			hub_space_hold(hub, process, NULL);
	} while (n > 0);
	return n;
}

static int take_sharer(struct kymo_hub *hub, struct hub_space *space, pid_t pid)
{
	struct hub_process *process = hub_find_process(hub, pid);
	int err;

	if (!process || !process->tasks)
		return -EBUSY;
	err = seize_all(hub, process);
	if (err || process->space == space)
		return err;
	hub_space_leave(hub, process);
	join_space(process, space);
	return 0;
}

/* Processes that run in the same memory, if the kernel can tell. */
static int take_sharers(struct kymo_hub *hub, const struct hub_process *process, struct hub_space *space)
{
	pid_t own = kymo_live_thread(process->pid);
	kymo_cleanup_closedir DIR *proc = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	while (proc && !err && (entry = readdir(proc))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		if (other > 0 && other != process->pid && kymo_compare_memory(own, other) == 0)
			err = take_sharer(hub, space, other);
	}
	return err;
}

/* The space of a process into which a breakpoint is to be put: all its threads are the hub's then. A negative errno. */
static int get_space(struct kymo_hub *hub, struct hub_process *process, struct hub_space **ret)
{
	struct hub_space *space = process->space;
	const bool was_alone = space && space->is_alone && space->n_processes == 1;
	int err;

	if (space && space->n_in) {
		*ret = space;
		return 0;
	}
	err = seize_all(hub, process);
	if (!err && !space)
		space = make_space(hub, process);
	if (!err && !space)
		err = -EPERM;
	/* To look at all processes takes longer than all the rest, and clients insert a breakpoint at each hit. */
	if (!err && !(was_alone && space->is_alone)) {
		err = take_sharers(hub, process, space);
		space->is_alone = !err;
	}
	if (!err)
		*ret = space;
	return err;
}

/* ---- putting in and taking out --------------------------------------------------------------- */

static int check_address(struct hub_space *space, const struct hub_process *process, uint64_t address,
			 struct hub_code *code_ret)
{
	struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(kymo_live_thread(process->pid), &maps);
	const struct kymo_map *map = error ? NULL : kymo_maps_at(&maps, address);
	int err = 0;

	if (error)
		err = error->code == KYMO_ERROR_GONE ? -ESRCH : -EPERM;
	else if (!map)
		err = -EIO;
	else if (!map->executable || map->shared)
		err = -EINVAL;
	else if (hub_pads_cover(space, address, 1) || hub_is_in_jump(space, &maps, address) ||
		 hub_calls_at(process, address))
		err = -EBUSY;
	else
		*code_ret = hub_code_at(map, address);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return err;
}

/* Threads that have no engines are no business of the hub's, where nothing is in. */
static void kick_space(struct kymo_hub *hub, const struct hub_space *space)
{
	for (struct hub_process *p = hub->processes; p; p = p->next)
		for (struct task *task = p->space == space ? p->tasks : NULL; task; task = task->in_process)
			hub_kick(hub, task);
}

int hub_space_insert(struct kymo_hub *hub, struct hub_process *process, uint64_t address)
{
	struct hub_space *space = NULL;
	int err = get_space(hub, process, &space);
	struct hub_break *b = err ? NULL : hub_space_find(space, address);
	struct hub_code code;

	if (b && b->owners && hub_break_is_inserted(space, b)) {
		b->owners++;
		return 0;
	}
	if (!err)
		err = check_address(space, process, address, &code);
	if (!err && b && b->owners) {
		err = hub_put_in_again(hub, space, b, &code);
		b->owners += !err;
		return err;
	}
	if (!err && !b)
		b = hub_put_break(space, address);
	if (!err)
		space->is_disarmed |= !hub_space_can_run(hub, space); /* the holder may be reading its text */
	if (!err)
		err = b ? hub_put_in(hub, space, b, &code) : -ENOMEM;
	if (!err) {
		b->owners = 1;
		space->n_in++;
	}
	if (process->space)
		kick_space(hub, process->space);
	else
		for (struct task *task = process->tasks; task; task = task->in_process)
			hub_kick(hub, task);
	return err;
}

int hub_space_renew(struct kymo_hub *hub, const struct hub_process *process, uint64_t address)
{
	struct hub_space *space = process->space;
	struct hub_break *b = space ? hub_space_find(space, address) : NULL;
	struct hub_code code;
	int err;

	if (!b || hub_break_is_inserted(space, b))
		return 0;
	err = check_address(space, process, address, &code);
	return err ? err : hub_put_in_again(hub, space, b, &code);
}

static void take_out_break(struct kymo_hub *hub, struct hub_space *space, uint64_t address,
			   struct hub_mappings *mappings)
{
	struct hub_break *b = hub_space_find(space, address);

	if (!b || !b->owners || --b->owners)
		return;
	if (b->by_pad || (b->original != KYMO_TRAP_BYTE && !space->is_disarmed))
		hub_space_lift(space, b, mappings);
	b->by_pad = false;
	hub_put_strike(hub, b);
	b->out_ns = kymo_now_ns();
	if (!--space->n_in)
		kick_space(hub, space);
}

void hub_space_remove(struct kymo_hub *hub, const struct hub_process *process, uint64_t address)
{
	kymo_cleanup(hub_mappings_deinit) struct hub_mappings mappings = { .pid = process->pid };

	if (process->space)
		take_out_break(hub, process->space, address, &mappings);
}

static void drop(struct kymo_hub *hub, struct hub_space *space, struct kymo_engine *engine,
		 struct hub_mappings *mappings)
{
	while (engine->breakpoints.n)
		take_out_break(hub, space, engine->breakpoints.items[--engine->breakpoints.n], mappings);
}

void hub_breakpoints_drop(struct kymo_hub *hub, struct kymo_engine *engine)
{
	const struct hub_process *process = engine->breakpoints.n ? engine->task->process : NULL;
	kymo_cleanup(hub_mappings_deinit) struct hub_mappings mappings = { .pid = process ? process->pid : 0 };

	if (process)
		drop(hub, process->space, engine, &mappings);
}

/* Of a process in there. Where none is left, nothing is known, and nothing can be written. */
static struct hub_mappings mappings_of(const struct kymo_hub *hub, const struct hub_space *space)
{
	const struct hub_process *process = hub->processes;

	while (process && process->space != space)
		process = process->next;
	return (struct hub_mappings){ .pid = process ? process->pid : 0, .was_read = !process };
}

static void clear(struct kymo_hub *hub, struct hub_space *space)
{
	kymo_cleanup(hub_mappings_deinit) struct hub_mappings mappings = mappings_of(hub, space);

	for (size_t i = 0; i < space->breaks.n; i++)
		while (space->breaks.items[i].owners)
			take_out_break(hub, space, space->breaks.items[i].address, &mappings);
}

void hub_space_clear_all(struct kymo_hub *hub)
{
	for (struct hub_space *space = hub->spaces; space; space = space->next)
		clear(hub, space);
}

/* ---- births and ends ------------------------------------------------------------------------- */

void hub_space_leave(struct kymo_hub *hub, struct hub_process *process)
{
	struct hub_space *space = process->space;
	struct hub_mappings mappings;

	if (!space)
		return;
	process->space = NULL; /* it may have executed another program: its mappings are not those of the space */
	mappings = mappings_of(hub, space);
	for (struct task *task = process->tasks; task; task = task->in_process)
		for (size_t i = 0; i < task->engines.n; i++)
			drop(hub, space, task->engines.items[i], &mappings);
	hub_mappings_deinit(&mappings);
	if (--space->n_processes)
		return;
	clear(hub, space);
	space->pads.n = 0;
	hub_memory_put(space->memory);
	space->memory = NULL;
	space->left_ns = kymo_now_ns();
}

/* What it has is a copy, as the memory was when it was made. What was taken out since is in there. */
static void clean(const struct hub_memory *memory, const struct hub_space *space, pid_t tid)
{
	kymo_cleanup(hub_mappings_deinit) struct hub_mappings mappings = { .pid = tid };
	uint64_t now = kymo_now_ns();

	for (size_t i = 0; i < space->breaks.n; i++) {
		const struct hub_break *b = &space->breaks.items[i];

		if (!b->by_pad && (b->owners || now - b->out_ns < LATE_NS + LINGER_NS) &&
		    hub_break_is_there(memory, b, &mappings))
			hub_space_swap(memory, b->address, KYMO_TRAP_BYTE, b->original);
	}
}

/* It has the jumps and the pads, of which no word is set. They are the maker's: its breakpoints are by int3. A pad that
 * faults is a hit, for which a breakpoint is found. */
static void copy_pads(struct kymo_hub *hub, const struct hub_space *space, struct hub_process *child)
{
	struct hub_space *own = make_space(hub, child);

	for (size_t i = 0; own && i < space->pads.n; i++)
		if (hub_put_break(own, space->pads.items[i].site) && kymo_vec_push(&own->pads, space->pads.items[i]))
			own->pads.items[own->pads.n - 1].is_used = own->pads.items[own->pads.n - 1].is_leaving = false;
}

void hub_space_born(struct kymo_hub *hub, struct hub_process *maker, struct hub_process *child, bool is_vfork)
{
	const struct hub_memory *memory;
	int differs;

	if (!maker->space || child->space)
		return;
	maker->space->is_alone = false;
	differs = kymo_compare_memory(kymo_live_thread(maker->pid), child->pid);
	if (differs == 0 || (differs < 0 && is_vfork)) {
		join_space(child, maker->space);
		return;
	}
	memory = hub_memory_of(child);
	if (memory)
		clean(memory, maker->space, child->pid);
	if (memory && maker->space->pads.n)
		copy_pads(hub, maker->space, child);
}

void hub_space_clean_unclaimed(struct kymo_hub *hub, pid_t tid)
{
	struct hub_memory memory = { 0 };
	struct kymo_error *error, *refusal = NULL;

	if (!hub->spaces)
		return;
	error = kymo_memory_init_held(tid, &memory.opened, &refusal);
	for (const struct hub_space *space = hub->spaces; space && !error && !refusal; space = space->next)
		clean(&memory, space, tid);
	if (!error)
		kymo_memory_deinit(&memory.opened);
	kymo_error_destroy(refusal);
	kymo_error_destroy(error);
}

bool hub_space_needs_clock(const struct kymo_hub *hub)
{
	const struct hub_space *space = hub->spaces;

	while (space && space->n_processes)
		space = space->next;
	return space != NULL;
}

void hub_space_look_at_clock(struct kymo_hub *hub, uint64_t now)
{
	for (struct hub_space **at = &hub->spaces, *space; (space = *at);) {
		if (space->n_processes || now - space->left_ns < LINGER_NS) {
			at = &space->next;
			continue;
		}
		*at = space->next;
		kymo_vec_deinit(&space->pads);
		kymo_vec_deinit(&space->breaks);
		free(space);
	}
}
