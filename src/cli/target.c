#include "cli/target.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/numbers.h"
#include "procfs/maps.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/module.h"
#include "sym/open.h"

static bool same_file(const struct kymo_map *a, const struct kymo_map *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static int by_path(const void *a, const void *b)
{
	return strcmp((*(const struct kymo_map *const *)a)->path, (*(const struct kymo_map *const *)b)->path);
}

/* Keeps one map a file. Maps of one file lie side by side, so that looking back is short. */
static struct kymo_error *add_file(struct cli_target *target, const struct kymo_map *map)
{
	for (size_t i = target->files.n; i-- > 0;)
		if (same_file(target->files.items[i], map))
			return NULL;
	return kymo_vec_push(&target->files, map) ? NULL : &kymo_error_no_memory;
}

static struct kymo_error *init_process(struct cli_target *target)
{
	struct kymo_error *error = kymo_maps_read(target->pid, &target->maps);

	for (size_t i = 0; !error && i < target->maps.n; i++) {
		const struct kymo_map *map = &target->maps.items[i];

		if (map->executable && map->path[0] == '/')
			error = add_file(target, map);
	}
	if (!error && !target->files.n)
		error = kymo_error_create(KYMO_ERROR_NOT_FOUND,
					  "process %d has no program: it is a kernel thread, or has ended",
					  target->pid);
	if (!error)
		qsort(target->files.items, target->files.n, sizeof(*target->files.items), by_path);
	return error;
}

struct kymo_error *cli_target_init(const char *text, struct cli_target *ret)
{
	struct cli_target target = { 0 };
	struct kymo_error *error;

	if (*text && strspn(text, "0123456789") == strlen(text)) {
		if (!cli_parse_pid(text, &target.pid))
			return kymo_error_create(KYMO_ERROR_USAGE,
						 "'%s' is no process id; a file of that name is written ./%s", text,
						 text);
		error = init_process(&target);
	} else {
		error = kymo_find_file(text, &target.file);
	}
	if (error) {
		cli_target_deinit(&target);
		return error;
	}
	*ret = target;
	return NULL;
}

void cli_target_deinit(struct cli_target *target)
{
	kymo_vec_deinit(&target->files);
	kymo_maps_deinit(&target->maps);
	free(target->file);
	target->file = NULL;
}

size_t cli_target_count(const struct cli_target *target)
{
	return target->pid ? target->files.n : 1;
}

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return !kymo_pread_all(fd, magic, sizeof(magic), 0) && !memcmp(magic, ELFMAG, SELFMAG);
}

struct kymo_error *cli_target_open(const struct cli_target *target, size_t i, struct kymo_module **ret)
{
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error;

	if (!target->pid)
		return kymo_module_open(target->file, ret);
	error = kymo_open_mapped(target->pid, target->files.items[i], &fd);
	if (error)
		return error;
	if (!is_elf(fd)) {
		*ret = NULL;
		return NULL;
	}
	return kymo_module_open_fd(fd, target->files.items[i]->path, ret);
}

void cli_target_nearest(const struct cli_target *target, const char *file, const char *name, char *out, size_t size)
{
	*out = '\0';
	for (size_t i = 0; !*out && i < cli_target_count(target); i++) {
		struct kymo_module *module = NULL;

		/* What cannot be read has been told already. */
		kymo_error_destroy(cli_target_open(target, i, &module));
		if (module &&
		    (!file || kymo_name_matches_file(file, kymo_module_path(module), kymo_module_soname(module))))
			kymo_module_nearest(module, name, out, size);
		kymo_module_close(module);
	}
}
