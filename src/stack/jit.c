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

void stack_jit_open(struct stack_jit *jit, pid_t tid)
{
	const uint64_t now = kymo_now_ns();
	int fd;

	if (jit->table || (jit->opened_at_ns && now - jit->opened_at_ns < STACK_BELIEVED_NS))
		return;
	jit->opened_at_ns = now;
	fd = kymo_open_perf_map(tid);
	if (fd >= 0)
		jit->table = kymo_perf_table_create(fd);
}

static void read_map(struct stack_jit *jit, bool *may_read)
{
	const uint64_t begin = kymo_now_ns();

	kymo_perf_table_read(jit->table);
	jit->read_at_ns = kymo_now_ns();
	jit->cost_ns = jit->read_at_ns - begin;
	*may_read = false;
}

const char *stack_jit_name(struct stack_jit *jit, uint64_t address, bool *may_read, uint64_t *start_ret)
{
	const char *name;

	if (!jit->table)
		return NULL;
	if (*may_read && stack_is_due(jit->read_at_ns, jit->cost_ns, STACK_BELIEVED_NS))
		read_map(jit, may_read);
	name = kymo_perf_table_at(jit->table, address, start_ret);
	if (name || !*may_read || !stack_is_due(jit->read_at_ns, jit->cost_ns, 0))
		return name;
	read_map(jit, may_read);
	return kymo_perf_table_at(jit->table, address, start_ret);
}
