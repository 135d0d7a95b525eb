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
#include "hub/trap/keeper.h"
#include "hub/trap/disarm.h"
#include "hub/trap/space.h"
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
	if (!err)
		err = take_sharers(hub, process, space);
	if (!err)
		*ret = space;
	return err;
}

/* ---- putting in and taking out --------------------------------------------------------------- */

/* Whether the address is within a jump that leads to kymo's code, after its first byte. */
static bool is_in_jump(struct hub_space *space, const struct kymo_maps *maps, uint64_t address)
{
	uint8_t bytes[2 * KYMO_JUMP_SIZE];

	for (uint64_t back = 1; back < KYMO_JUMP_SIZE; back++) {
		const struct kymo_map *map;

		if (hub_space_read(space, address - back, bytes,
				   KYMO_JUMP_SIZE)) /* there may be a breakpoint on the jump itself */
			continue;
		map = kymo_maps_at(maps, kymo_jump_target(address - back, bytes));
		if (map && kymo_wire_is_own_path(map->path))
			return true;
	}
	return false;
}

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
	else if (is_in_jump(space, &maps, address) || hub_calls_at(process, address))
		err = -EBUSY;
	else
		*code_ret = hub_code_at(map, address);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return err;
}

static struct hub_break *add_break(struct hub_space *space, uint64_t address)
{
	size_t i = hub_space_index_of(space, address);

	if (!kymo_vec_reserve(&space->breaks, space->breaks.n + 1))
		return NULL;
	memmove(&space->breaks.items[i + 1], &space->breaks.items[i],
		(space->breaks.n - i) * sizeof(space->breaks.items[0]));
	space->breaks.n++;
	space->breaks.items[i] = (struct hub_break){ .address = address, .entry = -1 };
	return &space->breaks.items[i];
}

static void strike(struct kymo_hub *hub, struct hub_break *b)
{
	hub_strike(hub, b->entry);
	b->entry = -1;
}

/* Up to the end of the page. */
static void read_next(struct hub_space *space, struct hub_break *b)
{
	b->n_next = (uint8_t)(kymo_page_part(b->address, 1 + sizeof(b->next)) - 1);
	if (hub_space_read(space, b->address + 1, b->next, b->n_next))
		b->n_next = 0;
}

/* Note it, then write it. If no thread can run, it is disarmed at once; that it can be written is tried with the byte
 * that is there. */
static int put_in(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_code *code)
{
	int err = kymo_memory_read(&space->memory->opened, b->address, &b->original, 1);

	if (err)
		return err;
	read_next(space, b);
	b->entry = hub_note_byte(hub, space->memory->opened.fd, b->address, b->original);
	if (b->entry < 0)
		return b->entry;
	b->code = *code;
	b->is_void = false;
	if (b->original != KYMO_TRAP_BYTE)
		err = kymo_memory_write(&space->memory->opened, b->address,
					&(uint8_t){ space->is_disarmed ? b->original : KYMO_TRAP_BYTE }, 1);
	if (err) {
		strike(hub, b);
		return err;
	}
	b->is_in_jump = false;
	return 0;
}

/* Whether it is in memory, or will be when its process runs: stopped threads were compared when they stopped. */
static bool is_inserted(const struct hub_space *space, const struct hub_break *b)
{
	return !b->is_void && (space->is_disarmed || b->is_in_jump || hub_space_has_trap(space, b->address));
}

/* Once more, where its code was unmapped and other code is there now. */
static int put_in_again(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_code *code)
{
	int err;

	strike(hub, b);
	err = put_in(hub, space, b, code);
	b->is_void = err;
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

	if (b && b->owners && is_inserted(space, b)) {
		b->owners++;
		return 0;
	}
	if (!err)
		err = check_address(space, process, address, &code);
	if (!err && b && b->owners) {
		err = put_in_again(hub, space, b, &code);
		b->owners += !err;
		return err;
	}
	if (!err && !b)
		b = add_break(space, address);
	if (!err)
		space->is_disarmed |= !hub_space_can_run(hub, space); /* the holder may be reading its text */
	if (!err)
		err = b ? put_in(hub, space, b, &code) : -ENOMEM;
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

	if (!b || is_inserted(space, b))
		return 0;
	err = check_address(space, process, address, &code);
	return err ? err : put_in_again(hub, space, b, &code);
}

static void take_out_break(struct kymo_hub *hub, struct hub_space *space, uint64_t address,
			   struct hub_mappings *mappings)
{
	struct hub_break *b = hub_space_find(space, address);

	if (!b || !b->owners || --b->owners)
		return;
	if (b->original != KYMO_TRAP_BYTE && !space->is_disarmed)
		hub_space_lift(space, b, mappings);
	strike(hub, b);
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

		if ((b->owners || now - b->out_ns < LATE_NS + LINGER_NS) && hub_break_is_there(memory, b, &mappings))
			hub_space_swap(memory, b->address, KYMO_TRAP_BYTE, b->original);
	}
}

void hub_space_born(struct kymo_hub *hub, struct hub_process *maker, struct hub_process *child, bool is_vfork)
{
	const struct hub_memory *memory;
	int differs;

	if (!maker->space || child->space)
		return;
	differs = kymo_compare_memory(kymo_live_thread(maker->pid), child->pid);
	if (differs == 0 || (differs < 0 && is_vfork)) {
		join_space(child, maker->space);
		return;
	}
	memory = hub_memory_of(child);
	if (memory)
		clean(memory, maker->space, child->pid);
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
		kymo_vec_deinit(&space->breaks);
		free(space);
	}
}

/* ---- what engines read and write ------------------------------------------------------------- */

static struct hub_break *first_from(const struct hub_space *space, uint64_t address)
{
	return space->breaks.items + hub_space_index_of(space, address);
}

static bool is_within(const struct hub_space *space, const struct hub_break *b, uint64_t address, size_t size)
{
	return b < space->breaks.items + space->breaks.n && b->address - address < size;
}

int hub_space_read(struct hub_space *space, uint64_t address, void *data, size_t size)
{
	int err = kymo_memory_read(&space->memory->opened, address, data, size);

	for (const struct hub_break *b = first_from(space, address); !err && is_within(space, b, address, size); b++)
		if (b->owners && !b->is_void)
			((uint8_t *)data)[b->address - address] = b->original;
	return err;
}

/* Exchange what is below breakpoints with what is in `data`, which then has what is to be in memory. */
static void exchange(struct kymo_hub *hub, struct hub_space *space, uint64_t address, uint8_t *data, size_t size,
		     uint8_t *kept)
{
	for (struct hub_break *b = first_from(space, address); is_within(space, b, address, size); b++) {
		uint64_t at = b->address - address;

		if (!b->owners || !is_inserted(space, b))
			continue;
		kept[at] = b->original;
		b->original = data[at];
		hub_note_change(hub, b->entry, b->original);
		data[at] = space->is_disarmed || b->is_in_jump ? b->original : KYMO_TRAP_BYTE;
	}
}

int hub_space_write(struct kymo_hub *hub, struct hub_space *space, uint64_t address, const void *data, size_t size)
{
	kymo_cleanup_free uint8_t *bytes = malloc(size + 1), *kept = malloc(size + 1);
	int err;

	if (!bytes || !kept)
		return -ENOMEM;
	memcpy(bytes, data, size);
	exchange(hub, space, address, bytes, size, kept);
	err = kymo_memory_write(&space->memory->opened, address, bytes, size);
	if (err)
		exchange(hub, space, address, kept, size, bytes);
	return err;
}

/* A breakpoint within a jump would be a part of where it leads. */
static void look_for_jumps(struct hub_space *space, const struct kymo_maps *maps, uint64_t address, size_t size)
{
	for (struct hub_break *b = first_from(space, address); is_within(space, b, address, size); b++) {
		bool is = b->owners && is_in_jump(space, maps, b->address);

		if (is && !space->is_disarmed)
			hub_space_lift(space, b, NULL);
		if (is == b->is_in_jump)
			continue;
		b->is_in_jump = is;
		if (b->owners && !space->is_disarmed)
			hub_space_lower(space, b);
	}
}

int hub_space_write_text(struct kymo_hub *hub, const struct hub_process *process, uint64_t address, const void *data,
			 size_t size)
{
	struct hub_space *space = process->space;
	struct kymo_maps maps = { 0 };
	struct kymo_error *error;
	int err;

	if (!is_within(space, first_from(space, address), address, size))
		return hub_space_write(hub, space, address, data, size);
	if (!space->is_disarmed)
		return -EBUSY; /* a running thread would find a breakpoint in the middle of a jump */
	error = kymo_maps_read(kymo_live_thread(process->pid), &maps);
	err = error ? -ESRCH : hub_space_write(hub, space, address, data, size);
	if (!err)
		look_for_jumps(space, &maps, address, size);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return err;
}
