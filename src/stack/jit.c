/*
 * A program names code after it has made it, and may put other code there later. So the map is read again when it has
 * grown: at once for an address that has no name, and for others after a moment. Reading is given a twentieth of the
 * time at most.
 */
#include "stack/jit.h"

#include <string.h>

#include "base/io.h"
#include "procfs/perfmap.h"
#include "stack/pads.h"
#include "stack/state.h"
#include "sym/perftable.h"

#define BELIEVED_NS 100000000ull
#define SHARE 20u

void stack_jit_deinit(struct stack_jit *jit)
{
	kymo_perf_table_destroy(jit->table);
	*jit = (struct stack_jit){ .table = NULL };
}

bool stack_is_jit(const struct stack_region *region)
{
	const struct kymo_map *map = &region->map;

	return (!*map->path || !strncmp(map->path, "[anon", 5) || map->deleted) && !stack_is_pad(region);
}

static bool is_due(const struct stack_jit *jit, uint64_t after_ns)
{
	const uint64_t age = kymo_now_ns() - jit->looked_at_ns;

	return !jit->looked_at_ns || (age > after_ns && age > SHARE * jit->cost_ns);
}

void stack_jit_open(struct stack_jit *jit, pid_t tid)
{
	const uint64_t begin = kymo_now_ns();
	int fd;

	if (jit->table)
		return;
	fd = kymo_open_perf_map(tid);
	if (fd >= 0)
		jit->table = kymo_perf_table_create(fd);
	jit->looked_at_ns = begin;
	jit->cost_ns = kymo_now_ns() - begin;
}

static void read_map(struct stack_jit *jit, pid_t tid)
{
	const uint64_t begin = kymo_now_ns();

	stack_jit_open(jit, tid);
	if (jit->table)
		kymo_perf_table_read(jit->table);
	jit->looked_at_ns = begin;
	jit->cost_ns = kymo_now_ns() - begin;
}

const char *stack_jit_name(struct stack_jit *jit, pid_t tid, uint64_t address, uint64_t *start_ret)
{
	const char *name;

	if (is_due(jit, BELIEVED_NS))
		read_map(jit, tid);
	name = jit->table ? kymo_perf_table_at(jit->table, address, start_ret) : NULL;
	if (!name && is_due(jit, 0)) {
		read_map(jit, tid);
		name = jit->table ? kymo_perf_table_at(jit->table, address, start_ret) : NULL;
	}
	return name;
}
