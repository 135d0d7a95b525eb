/* Which mapped files the user means. */
#include "probe/resolve/files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe/code/cache.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/probes.h"
#include "probe/spec/spec.h"
#include "probe/threads/watch.h"
#include "procfs/maps.h"
#include "sym/files.h"
#include "sym/nearest.h"

struct kymo_error *probes_files_init(struct kymo_probes *probes)
{
	struct probe_cache *cache = probe_events_cache(probes->wanted.options.events);
	struct kymo_file_id *files;

	if (!probe_cache_names(cache)) {
		files = calloc(probes->wanted.n_specs ? probes->wanted.n_specs : 1, sizeof(*files));
		if (!files)
			return &kymo_error_no_memory;
		for (size_t i = 0; i < probes->wanted.n_specs; i++)
			if (probes->wanted.specs[i].file)
				files[i] = kymo_identify_file(probes->wanted.specs[i].file);
		probe_cache_keep_names(cache, files);
	}
	probes->per_spec.files = probe_cache_names(cache);
	return NULL;
}

bool probes_is_file(const struct kymo_probes *probes, size_t spec_at, const struct probe_module *module)
{
	return kymo_is_same_file(probes->per_spec.files[spec_at],
				 (struct kymo_file_id){ module->major, module->minor, module->inode });
}

static bool is_named(const struct kymo_probes *probes, const struct kymo_map *map)
{
	const struct kymo_file_id id = { map->major, map->minor, map->inode };

	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (probes->wanted.specs[i].file &&
		    (kymo_name_matches_file(probes->wanted.specs[i].file, map->path, NULL) ||
		     kymo_is_same_file(probes->per_spec.files[i], id)))
			return true;
	return false;
}

bool probes_is_wanted_file(const struct kymo_probes *probes, const struct kymo_map *map)
{
	if (is_named(probes, map) || probes_is_linker(map->path)) /* for the watch */
		return true;
	return !probes->wanted.options.traps &&
	       kymo_name_matches_file("libc", map->path, NULL); /* for guards, and
								   the watch at prctl */
}

/* "bash, libc.so.6, …": what the process has mapped executable, each file once. */
static void list_files(const struct kymo_maps *maps, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < maps->n && used < size; i++) {
		const char *path = maps->items[i].path;
		bool is_new = maps->items[i].executable && path[0] == '/' && strncmp(path, "/memfd:", 7) != 0;

		for (size_t k = 0; k < i && is_new; k++)
			is_new = !maps->items[k].executable || strcmp(maps->items[k].path, path) != 0;
		if (is_new)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
						 strrchr(path, '/') + 1);
	}
	if (used >= size)
		strcpy(out + size - 4, "…");
}

struct kymo_error *probes_check_file(const char *file)
{
	char sentence[1024];

	if (access(file, F_OK) && kymo_tell_source_line(file, sentence, sizeof(sentence)))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s", sentence);
	if (strchr(file, '/') && access(file, F_OK))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is no file %s", file);
	return NULL;
}

struct kymo_error *probes_not_mapped(const struct kymo_probes *probes, const char *file, const struct kymo_maps *maps)
{
	char files[400];

	list_files(maps, files, sizeof(files));
	/* If no process is followed a file has to be there; else it is waited for. */
	return kymo_error_create(
		KYMO_ERROR_NOT_FOUND, "process %d has mapped no file called %s; it has %s (%s it is waited for)",
		probes->pid, file, files, probes->is_starting ? "without --no-follow" : "with --follow");
}
