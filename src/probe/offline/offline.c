#include "probe/offline/offline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/uprobe.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/code.h"
#include "probe/offline/offline_sites.h"
#include "probe/offline/offline_refusals.h"
#include "probe/offline/offline_state.h"
#include "probe/spec/spec.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "sym/files.h"
#include "sym/module.h"
#include "sym/open.h"
#include "wire/shared.h"

/* ---- files ----------------------------------------------------------------------------------- */

static void file_deinit(struct offline_file *file)
{
	kymo_code_destroy(file->code);
	kymo_module_close(file->module);
	free(file->path);
	free(file->resolved);
	if (file->fd >= 0)
		close(file->fd);
}

static struct kymo_file_id id_of_map(const struct kymo_map *map)
{
	return (struct kymo_file_id){ map->major, map->minor, map->inode };
}

static struct kymo_error *file_init(struct kymo_offline *offline, int fd, const char *path, struct offline_file *file)
{
	struct stat st;

	*file = (struct offline_file){ .fd = fd, .path = strdup(path) };
	file->resolved = calloc(offline->n_specs ? offline->n_specs : 1, sizeof(*file->resolved));
	if (!file->path || !file->resolved)
		return &kymo_error_no_memory;
	if (fstat(fd, &st))
		return kymo_error_errno(errno, "cannot look at %s", path);
	if (!S_ISREG(st.st_mode))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is no file", path);
	file->id = kymo_file_id_of(&st);
	return NULL;
}

/* The file open at `fd` (taken over), known or new. */
static struct kymo_error *add_file(struct kymo_offline *offline, int fd, const char *path, size_t *ret)
{
	struct offline_file file;
	struct kymo_error *error = file_init(offline, fd, path, &file);

	for (size_t i = 0; i < offline->files.n && !error; i++) {
		if (!kymo_is_same_file(offline->files.items[i].id, file.id))
			continue;
		file_deinit(&file);
		*ret = i;
		return NULL;
	}
	if (!error)
		error = kymo_module_open_fd(fd, path, &file.module);
	if (!error && !kymo_vec_push(&offline->files, file))
		error = &kymo_error_no_memory;
	if (error) {
		file_deinit(&file);
		return error;
	}
	*ret = offline->files.n - 1;
	return NULL;
}

bool offline_is_file(const struct offline_file *file, struct kymo_file_id id)
{
	return kymo_is_same_file(file->id, id) || kymo_is_same_file(file->mapped, id);
}

static bool may_mean(const struct kymo_offline *offline, size_t spec, const struct kymo_map *map, const char *soname)
{
	return kymo_name_matches_file(offline->specs[spec].file, map->path, soname) ||
	       kymo_is_same_file(offline->states[spec].id, id_of_map(map));
}

static struct kymo_error *look_at_map(struct kymo_offline *offline, pid_t pid, const struct kymo_map *map)
{
	struct kymo_error *error;
	bool is_wanted = false;
	const char *soname;
	size_t at;
	int fd;

	for (size_t i = 0; i < offline->n_specs; i++)
		is_wanted |= may_mean(offline, i, map, NULL);
	for (size_t i = 0; i < offline->files.n; i++)
		is_wanted &= !kymo_is_same_file(offline->files.items[i].mapped, id_of_map(map));
	if (!is_wanted)
		return NULL;
	error = kymo_open_mapped(pid, map, &fd);
	if (!error)
		error = add_file(offline, fd, map->path, &at);
	if (error)
		return error;
	offline->files.items[at].mapped = id_of_map(map);
	soname = kymo_module_soname(offline->files.items[at].module);
	for (size_t i = 0; i < offline->n_specs && !error; i++)
		if (may_mean(offline, i, map, soname))
			error = offline_resolve(offline, i, at);
	return error;
}

struct kymo_error *kymo_offline_look(struct kymo_offline *offline, pid_t pid)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);

	if (error)
		return error;
	for (size_t i = 0; i < maps.n && !error; i++)
		if (maps.items[i].executable && maps.items[i].path[0] == '/')
			error = look_at_map(offline, pid, &maps.items[i]);
	kymo_maps_deinit(&maps);
	return error;
}

static struct kymo_error *find_file(struct kymo_offline *offline, const char *name, size_t *ret)
{
	kymo_cleanup_free char *path = NULL, *whole = NULL;
	struct kymo_error *error = kymo_find_file(name, &path);
	int fd;

	if (error)
		return error;
	whole = realpath(path, NULL);
	fd = open(whole ? whole : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return kymo_error_errno(errno, "cannot open %s", path);
	return add_file(offline, fd, whole ? whole : path, ret);
}

struct kymo_error *kymo_offline_find(struct kymo_offline *offline, pid_t pid)
{
	for (size_t i = 0; i < offline->n_specs; i++) {
		struct kymo_error *error;
		size_t at;

		if (offline->states[i].is_met)
			continue;
		error = find_file(offline, offline->specs[i].file, &at);
		if (!error)
			error = offline_resolve(offline, i, at);
		if (error)
			return error;
		if (pid)
			offline_warn(offline, "process %d has not mapped %s; it is recorded from when it does", pid,
				     offline->files.items[at].path);
	}
	return NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

/*
 * Whether the instruction of `site`, and what lies before it as far as another recording's jump may reach, is the
 * file's in `memory`.
 */
static bool is_free(const struct offline_file *file, const struct kymo_offline_site *site, const struct kymo_map *map,
		    int memory)
{
	uint8_t expected[KYMO_UPROBE_REACH + 16], there[KYMO_UPROBE_REACH + 16];
	uint64_t before = site->offset - map->offset, size, address;

	if (before > KYMO_UPROBE_REACH)
		before = KYMO_UPROBE_REACH;
	size = before + site->length;
	address = map->start + (site->offset - before - map->offset);
	if (address + size > map->end)
		size = map->end - address;
	if (kymo_pread_all(file->fd, expected, size, (off_t)(site->offset - before)) ||
	    kymo_pread_all(memory, there, size, (off_t)address))
		return true;
	return kymo_uprobe_is_free(expected, there, size);
}

/* The kernel sets no uprobes in such a mapping, and does not say so (kernel/events/uprobes.c: valid_vma()). */
static void warn_of_map(struct kymo_offline *offline, pid_t pid, const struct kymo_map *map)
{
	offline_warn(offline,
		     "process %d has mapped %s %s, where the kernel sets no probes: what runs there is not recorded",
		     pid, map->path,
		     !map->shared    ? "writable"
		     : map->writable ? "shared and writable"
				     : "shared");
}

/* Whether another recording has anything in the process. */
static bool is_recorded(const struct kymo_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (kymo_wire_is_own_path(maps->items[i].path))
			return true;
	return false;
}

static struct kymo_error *check_map(struct kymo_offline *offline, size_t first, pid_t pid, const struct kymo_map *map,
				    const struct kymo_maps *maps, int memory)
{
	struct kymo_error *error = NULL;
	bool is_told = !map->shared && !map->writable;

	for (size_t i = first; i < offline->sites.n && !error; i++) {
		const struct kymo_offline_site *site = &offline->sites.items[i];
		char reason[240];

		if (site->is_refused || !offline_is_file(&offline->files.items[site->file], id_of_map(map)) ||
		    site->offset < map->offset || site->offset - map->offset >= map->end - map->start)
			continue;
		if (!is_told)
			warn_of_map(offline, pid, map);
		is_told = true;
		if (is_free(&offline->files.items[site->file], site, map, memory))
			continue;
		snprintf(reason, sizeof(reason), "process %d has other code at it than the file: %s", pid,
			 is_recorded(maps) ? "another kymo records that process, and the kernel's breakpoint would "
					     "break it; wait for that "
					     "recording's end, or leave this location out"
					   : "a debugger or something else has changed it there");
		error = kymo_offline_refuse(offline, i, reason);
	}
	return error;
}

struct kymo_error *kymo_offline_check_text(struct kymo_offline *offline, size_t first, pid_t pid)
{
	kymo_cleanup_close int memory = -1;
	struct kymo_error *error;
	struct kymo_maps maps;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/mem", kymo_live_thread(pid));
	memory = open(name, O_RDONLY | O_CLOEXEC);
	error = memory < 0 ? NULL : kymo_maps_read(pid, &maps);
	if (memory < 0 || error) {
		kymo_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; i < maps.n && !error; i++)
		if (maps.items[i].executable && maps.items[i].path[0] == '/')
			error = check_map(offline, first, pid, &maps.items[i], &maps, memory);
	kymo_maps_deinit(&maps);
	return error;
}

struct kymo_error *kymo_offline_check_all(struct kymo_offline *offline, size_t first)
{
	DIR *proc = opendir("/proc");
	struct kymo_error *error = NULL;
	struct dirent *entry;

	while (proc && !error && (entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && !*end && pid != getpid())
			error = kymo_offline_check_text(offline, first, (pid_t)pid);
	}
	if (proc)
		closedir(proc);
	return error;
}

/* ---- begin and end --------------------------------------------------------------------------- */

const struct kymo_offline_site *kymo_offline_sites(const struct kymo_offline *offline, size_t *n_ret)
{
	*n_ret = offline->sites.n;
	return offline->sites.items;
}

int kymo_offline_file(const struct kymo_offline *offline, size_t i, const char **path_ret)
{
	*path_ret = offline->files.items[i].path;
	return offline->files.items[i].fd;
}

struct kymo_error *kymo_offline_create(const struct kymo_spec *specs, size_t n_specs, struct kymo_events *events,
				       void (*warn_fn)(const char *sentence, void *data), void *data,
				       struct kymo_offline **ret)
{
	struct kymo_offline *offline = calloc(1, sizeof(*offline));

	if (!offline)
		return &kymo_error_no_memory;
	offline->specs = specs;
	offline->n_specs = n_specs;
	offline->events = events;
	offline->warn = warn_fn;
	offline->data = data;
	offline->states = calloc(n_specs ? n_specs : 1, sizeof(*offline->states));
	if (!offline->states) {
		free(offline);
		return &kymo_error_no_memory;
	}
	for (size_t i = 0; i < n_specs; i++)
		offline->states[i].id = kymo_identify_file(specs[i].file);
	*ret = offline;
	return NULL;
}

void kymo_offline_destroy(struct kymo_offline *offline)
{
	if (!offline)
		return;
	for (size_t i = 0; i < offline->files.n; i++)
		file_deinit(&offline->files.items[i]);
	kymo_vec_deinit(&offline->files);
	kymo_vec_deinit(&offline->sites);
	free(offline->states);
	free(offline);
}
