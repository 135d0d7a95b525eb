/* Debug information is opened when the first address of a file is asked for, and stays open. */
#include "stack/sources.h"

#include "stack/state.h"
#include "sym/debug.h"

void kymo_stacks_need_sources(struct kymo_stacks *stacks)
{
	stacks->needs_debug = true;
}

static struct stack_file *find_numbered(struct kymo_stacks *stacks, uint32_t number)
{
	for (size_t i = 0; i < stacks->files.n; i++)
		if (stacks->files.items[i]->number == number)
			return stacks->files.items[i];
	return NULL;
}

static struct kymo_debug *debug_of(struct stack_file *file)
{
	if (!file->is_debug_read && file->module)
		kymo_error_destroy(kymo_debug_open_mapped(file->module, file->fd, &file->debug));
	file->is_debug_read = true;
	return file->debug;
}

size_t kymo_stacks_sources(struct kymo_stacks *stacks, uint32_t file_number, uint64_t address,
			   struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX])
{
	struct stack_file *file = find_numbered(stacks, file_number);
	struct kymo_debug *debug = file ? debug_of(file) : NULL;

	return debug ? kymo_debug_frames(debug, address, frames) : 0;
}
