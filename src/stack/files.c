/* Files that processes have mapped. One that several have is opened once; the last ones are kept for those to come. */
#include "stack/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "procfs/maps.h"
#include "stack/pads.h"
#include "stack/space.h"
#include "stack/stack.h"
#include "stack/state.h"
#include "sym/debug.h"
#include "sym/debuglink.h"
#include "sym/open.h"

enum { UNUSED_MAX = 32, VDSO_MAX = 1 << 16 };

static void close_file(struct stack_file *file)
{
	kymo_debug_close(file->debug);
	if (file->fd >= 0)
		close(file->fd);
	kymo_module_close(file->module);
	free(file);
}

/* The one without users that was used first goes, where there are too many. */
static void drop_unused(struct kymo_stacks *stacks)
{
	size_t n = 0, oldest = 0;

	for (size_t i = 0; i < stacks->files.n; i++) {
		if (stacks->files.items[i]->users || stacks->files.items[i]->is_named)
			continue;
		if (!n++ || stacks->files.items[i]->used < stacks->files.items[oldest]->used)
			oldest = i;
	}
	if (n <= UNUSED_MAX)
		return;
	close_file(stacks->files.items[oldest]);
	stacks->files.items[oldest] = stacks->files.items[--stacks->files.n];
}

void stack_file_name(struct kymo_stacks *stacks, struct stack_file *file)
{
	if (file->is_named || !stacks->needs_debug || stacks->n_named == STACK_NAMED_MAX)
		return;
	file->is_named = true;
	stacks->n_named++;
}

void stack_file_put(struct kymo_stacks *stacks, struct stack_file *file)
{
	if (!file)
		return;
	file->users--;
	file->used = ++stacks->clock;
	drop_unused(stacks);
}

void stack_files_deinit(struct kymo_stacks *stacks)
{
	for (size_t i = 0; i < stacks->files.n; i++)
		close_file(stacks->files.items[i]);
	kymo_vec_deinit(&stacks->files);
}

static struct stack_file *find_file(struct kymo_stacks *stacks, const struct stat *st)
{
	for (size_t i = 0; i < stacks->files.n; i++) {
		struct stack_file *file = stacks->files.items[i];

		if (file->dev == st->st_dev && file->inode == st->st_ino && file->size == (uint64_t)st->st_size &&
		    file->changed.tv_sec == st->st_ctim.tv_sec && file->changed.tv_nsec == st->st_ctim.tv_nsec)
			return file;
	}
	return NULL;
}

/* A file that can't be taken apart is kept, too, so that it is tried once. */
static struct stack_file *open_mapped_file(struct kymo_stacks *stacks, int fd, const char *path)
{
	struct stack_file *file;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	file = find_file(stacks, &st);
	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file || !kymo_vec_push(&stacks->files, file)) {
			free(file);
			return NULL;
		}
		*file = (struct stack_file){ .dev = st.st_dev,
					     .inode = st.st_ino,
					     .changed = st.st_ctim,
					     .size = (uint64_t)st.st_size,
					     .number = ++stacks->last_file,
					     .fd = -1 };
		kymo_error_destroy(kymo_module_open_fd(fd, path, &file->module));
		/* The process may have ended, or the file have another name here, when its lines are wanted. */
		if (stacks->needs_debug && fd < STACK_NAMED_MAX && file->module && kymo_module_has_lines(file->module))
			file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	file->users++;
	return file;
}

/* The vdso is in memory alone. */
static int copy_vdso(const struct stack_region *region, const struct kymo_stack_thread *thread)
{
	const size_t size = region->map.end - region->map.start;
	kymo_cleanup_free char *bytes = size <= VDSO_MAX ? malloc(size) : NULL;
	kymo_cleanup_close int fd = bytes ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd < 0 || !thread->read(thread->context, region->map.start, bytes, size) || kymo_write_all(fd, bytes, size))
		return -1;
	return kymo_take_fd(fd);
}

struct kymo_module *stack_module(struct kymo_stacks *stacks, struct stack_region *region,
				 const struct kymo_stack_thread *thread)
{
	kymo_cleanup_close int fd = -1;

	if (!region->is_looked_for && !stack_is_pad(region)) {
		if (!strcmp(region->map.path, "[vdso]"))
			fd = copy_vdso(region, thread);
		else
			kymo_error_destroy(kymo_open_mapped(thread->tid, &region->map, &fd));
		region->file = fd < 0 ? NULL : open_mapped_file(stacks, fd, region->map.path);
	}
	region->is_looked_for = true;
	return region->file ? region->file->module : NULL;
}
