#include "base/error.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/memory.h"

/* A process that was followed from its birth shares its memory with members of its tree alone. So nothing is mapped in
 * it while it is frozen, and no thread changes what the others have, too. */
static bool is_at_rest(const struct kymo_process *process)
{
	return kymo_process_is_stopped(process) && process->tree && process->was_born_here &&
	       !kymo_tree_sharing_child(process);
}

struct kymo_error *kymo_process_maps(struct kymo_process *process, struct kymo_maps *ret)
{
	struct kymo_error *error;

	if (!is_at_rest(process))
		return kymo_maps_read(process->pid, ret);
	error = process->known.has_maps ? NULL : kymo_maps_read(process->pid, &process->known.maps);
	if (error)
		return error;
	process->known.has_maps = true;
	return kymo_maps_copy(&process->known.maps, ret);
}

bool kymo_process_status(struct kymo_process *process, struct kymo_process_info *ret)
{
	bool is_known = process->known.has_info && is_at_rest(process);

	if (!is_known) {
		is_known = kymo_process_peek_status(process->pid, &process->known.info);
		process->known.has_info = is_known;
	}
	*ret = process->known.info;
	return is_known;
}

int kymo_process_read(struct kymo_process *process, uint64_t address, void *data, size_t size)
{
	return kymo_memory_read(&process->memory, address, data, size);
}

/* A hub writes to what the process has now. If that has executed something since it was opened here, what is read here
 * is gone. */
static int write_through_hub(struct kymo_process *process, uint64_t address, const void *data, size_t size)
{
	uint8_t first;
	int err = size ? kymo_process_read(process, address, &first, sizeof(first)) : 0;

	return err ? err : kymo_joined_write(process->joined, address, data, size);
}

int kymo_process_write(struct kymo_process *process, uint64_t address, const void *data, size_t size)
{
	return process->joined && kymo_joined_writes(process->joined)
		       ? write_through_hub(process, address, data, size)
		       : kymo_memory_write(&process->memory, address, data, size);
}
