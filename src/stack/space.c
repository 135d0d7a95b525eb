/*
 * The code that processes have mapped, read when it may have changed: when the caller says so, when a frame is in no
 * mapping, and every 0.1 s, as other threads may map some, too. Reading takes the longer the more a process has mapped;
 * it is given a twentieth of the time at most, unless the caller says that something changed.
 */
#include "stack/space.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/search.h"
#include "procfs/maps.h"
#include "procfs/memory.h"
#include "stack/files.h"
#include "stack/stack.h"
#include "stack/state.h"
#include "wire/shared.h"

enum { SPACES_MAX = 256 };

static void drop_regions(struct kymo_stacks *stacks, struct stack_space *space)
{
	for (size_t i = 0; i < space->regions.n; i++) {
		stack_file_put(stacks, space->regions.items[i].file);
		free(space->regions.items[i].map.path);
		free(space->regions.items[i].name);
	}
	kymo_vec_deinit(&space->regions);
}

static void drop_space(struct kymo_stacks *stacks, size_t i)
{
	struct stack_space *space = stacks->spaces.items[i];

	drop_regions(stacks, space);
	stack_jit_deinit(&space->jit);
	free(space);
	stacks->spaces.items[i] = stacks->spaces.items[--stacks->spaces.n];
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What was found out of a region stays, where it is still the same. */
static void inherit(struct stack_space *before, struct stack_region *region)
{
	const size_t at =
		kymo_partition_point(i, before->regions.n, before->regions.items[i].map.start < region->map.start);
	struct stack_region *same = at < before->regions.n ? &before->regions.items[at] : NULL;

	if (!same || same->map.start != region->map.start || same->map.end != region->map.end ||
	    same->map.offset != region->map.offset || same->map.inode != region->map.inode ||
	    same->map.major != region->map.major || same->map.minor != region->map.minor ||
	    strcmp(same->name, region->name) != 0)
		return;
	region->file = same->file;
	region->is_looked_for = same->is_looked_for;
	same->file = NULL;
}

static bool add_region(struct stack_space *space, struct stack_space *before, struct kymo_map *map)
{
	struct stack_region region = { .map = *map };

	if (asprintf(&region.name, "%s%s", map->path, map->deleted ? " (deleted)" : "") < 0)
		return false;
	if (!kymo_vec_push(&space->regions, region)) {
		free(region.name);
		return false;
	}
	map->path = NULL;
	inherit(before, &space->regions.items[space->regions.n - 1]);
	return true;
}

static void note_journal(struct stack_space *space, const struct kymo_map *map)
{
	if (!map->offset && !map->executable &&
	    space->n_journals < sizeof(space->journals) / sizeof(*space->journals) &&
	    kymo_wire_is_shared_path(map->path))
		space->journals[space->n_journals++] = map->start;
}

static bool read_walked_memory(void *context, uint64_t address, void *data, size_t size)
{
	return context && !kymo_memory_read(context, address, data, size);
}

/* All files at once: when a record is looked at the process may have ended. */
static void open_files(struct kymo_stacks *stacks, struct stack_space *space, pid_t tid)
{
	struct kymo_stack_thread thread = { .tid = tid, .pid = space->pid, .read = read_walked_memory };
	struct kymo_memory memory;
	struct kymo_error *error;
	bool is_due = false;

	for (size_t i = 0; i < space->regions.n; i++)
		is_due |= !space->regions.items[i].is_looked_for;
	if (!is_due)
		return;
	error = kymo_memory_init(tid, &memory); /* for the vdso alone */
	thread.context = error ? NULL : &memory;
	for (size_t i = 0; i < space->regions.n; i++)
		stack_module(stacks, &space->regions.items[i], &thread);
	if (!error)
		kymo_memory_deinit(&memory);
	kymo_error_destroy(error);
}

/* Of a process that is recorded: whether these are its mappings still, or those of another program, or none. */
static bool are_its(const struct stack_space *space, const struct kymo_maps *maps)
{
	bool are = !space->n_journals && maps->n;

	for (size_t i = 0; i < maps->n && !are; i++)
		are = kymo_wire_is_shared_path(maps->items[i].path);
	return are;
}

static void replace_maps(struct kymo_stacks *stacks, struct stack_space *space, struct kymo_maps *maps)
{
	struct stack_space before = *space;
	bool ok = true;

	*space = (struct stack_space){
		.pid = before.pid, .used = before.used, .is_recorded = before.is_recorded, .jit = before.jit
	};
	for (size_t i = 0; i < maps->n && ok; i++) {
		note_journal(space, &maps->items[i]);
		ok = !maps->items[i].executable || add_region(space, &before, &maps->items[i]);
	}
	drop_regions(stacks, &before);
}

static bool has_jit(const struct stack_space *space)
{
	size_t i = 0;

	while (i < space->regions.n && !stack_is_jit(&space->regions.items[i]))
		i++;
	return i < space->regions.n;
}

static void read_space(struct kymo_stacks *stacks, struct stack_space *space, pid_t tid)
{
	const uint64_t begin = kymo_now_ns();
	struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(tid, &maps);

	if (!space->is_recorded || are_its(space, &maps)) {
		replace_maps(stacks, space, &maps);
		if (has_jit(space))
			stack_jit_open(&space->jit, tid);
	}
	if (!error)
		kymo_maps_deinit(&maps);
	kymo_error_destroy(error);
	space->is_changed = false;
	space->cost_ns = kymo_now_ns() - begin; /* each file is opened once, however long that takes */
	if (space->is_recorded)
		open_files(stacks, space, tid);
	space->read_at_ns = kymo_now_ns();
}

/* ---- finding --------------------------------------------------------------------------------- */

static size_t find_space(const struct kymo_stacks *stacks, pid_t pid)
{
	size_t i = 0;

	while (i < stacks->spaces.n && stacks->spaces.items[i]->pid != pid)
		i++;
	return i;
}

/* Spaces of recorded processes stay until they are forgotten: what such a process had mapped may be gone.
 */
static void make_room_for_space(struct kymo_stacks *stacks)
{
	size_t oldest = SIZE_MAX, n = 0;

	for (size_t i = 0; i < stacks->spaces.n; i++) {
		const struct stack_space *space = stacks->spaces.items[i];

		if (space->is_recorded)
			continue;
		n++;
		if (oldest == SIZE_MAX || space->used < stacks->spaces.items[oldest]->used)
			oldest = i;
	}
	if (n >= SPACES_MAX)
		drop_space(stacks, oldest);
}

static struct stack_space *add_space(struct kymo_stacks *stacks, pid_t pid)
{
	struct stack_space *space = calloc(1, sizeof(*space));

	make_room_for_space(stacks);
	if (!space || !kymo_vec_push(&stacks->spaces, space)) {
		free(space);
		return NULL;
	}
	*space = (struct stack_space){ .pid = pid, .is_changed = true };
	return space;
}

struct stack_space *stack_space_of(struct kymo_stacks *stacks, const struct kymo_stack_thread *thread)
{
	const size_t i = find_space(stacks, thread->pid);
	struct stack_space *space = i < stacks->spaces.n ? stacks->spaces.items[i] : add_space(stacks, thread->pid);

	if (!space)
		return NULL;
	space->used = ++stacks->clock;
	if (space->is_changed || stack_is_due(space->read_at_ns, space->cost_ns, STACK_BELIEVED_NS))
		read_space(stacks, space, thread->tid);
	return space;
}

bool stack_space_renew(struct kymo_stacks *stacks, struct stack_space *space, const struct kymo_stack_thread *thread)
{
	if (!stack_is_due(space->read_at_ns, space->cost_ns, 0))
		return false;
	read_space(stacks, space, thread->tid);
	return true;
}

struct stack_region *stack_region_at(struct stack_space *space, uint64_t address)
{
	const size_t at = kymo_partition_point(i, space->regions.n, space->regions.items[i].map.end <= address);

	return at < space->regions.n && space->regions.items[at].map.start <= address ? &space->regions.items[at]
										      : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct kymo_stacks *kymo_stacks_create(void)
{
	return calloc(1, sizeof(struct kymo_stacks));
}

void kymo_stacks_destroy(struct kymo_stacks *stacks)
{
	if (!stacks)
		return;
	while (stacks->spaces.n)
		drop_space(stacks, stacks->spaces.n - 1);
	kymo_vec_deinit(&stacks->spaces);
	stack_files_deinit(stacks);
	free(stacks);
}

void kymo_stacks_changed(struct kymo_stacks *stacks, pid_t pid)
{
	const size_t i = find_space(stacks, pid);

	if (i < stacks->spaces.n)
		stacks->spaces.items[i]->is_changed = true;
}

void kymo_stacks_note(struct kymo_stacks *stacks, pid_t number, pid_t pid)
{
	const size_t i = find_space(stacks, number);
	struct stack_space *space = i < stacks->spaces.n ? stacks->spaces.items[i] : add_space(stacks, number);

	if (!space)
		return;
	space->is_recorded = true;
	space->used = ++stacks->clock;
	read_space(stacks, space, pid);
}

void kymo_stacks_forget(struct kymo_stacks *stacks, pid_t pid)
{
	const size_t i = find_space(stacks, pid);

	if (i < stacks->spaces.n)
		drop_space(stacks, i);
}
