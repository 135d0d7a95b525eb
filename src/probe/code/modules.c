/* What the process has mapped, and is looked into: files, and the code around an address in memory of no file. */
#include "probe/code/modules.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/jit.h"
#include "probe/probes.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/maps.h"
#include "sym/files.h"
#include "sym/module.h"
#include "sym/sym.h"
#include "sym/symbols.h"

static bool is_same_file(const struct probe_module *module, const struct kymo_map *map)
{
	return module->inode == map->inode && module->major == map->major && module->minor == map->minor;
}

/* The one that `map` is of, or NULL. */
static const struct probe_module *module_of(const struct kymo_probes *probes, const struct kymo_map *map)
{
	for (size_t i = 0; i < probes->modules.n; i++) {
		const struct probe_module *module = &probes->modules.items[i];

		if (!module->is_gone && is_same_file(module, map) && map->start >= module->low &&
		    map->end <= module->high)
			return module;
	}
	return NULL;
}

bool probes_is_known(const struct kymo_probes *probes, const struct kymo_map *map)
{
	return module_of(probes, map) != NULL;
}

/* From its first segment to its last. A program may map its file elsewhere, too. */
static void find_ends(struct probe_module *module)
{
	size_t n;
	const struct kymo_segment *segments = kymo_module_segments(module->module, &n);

	module->low = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		uint64_t low = module->bias + kymo_page_down(segments[i].vaddr);
		uint64_t high = module->bias + kymo_page_up(segments[i].vaddr + segments[i].memory_size);

		module->low = low < module->low ? low : module->low;
		module->high = high > module->high ? high : module->high;
	}
}

void probes_module_deinit(struct kymo_probes *probes, struct probe_module *module)
{
	probe_cache_put(probe_events_cache(probes->wanted.options.events), module->file);
	kymo_jit_close(module->jit);
	free(module->path);
}

static bool is_loaded(const struct kymo_probes *probes, const struct kymo_map *map)
{
	for (size_t i = 0; i < probes->modules.n; i++)
		if (is_same_file(&probes->modules.items[i], map))
			return true;
	return false;
}

struct kymo_error *probes_open_module(struct kymo_probes *probes, const struct kymo_map *map)
{
	struct probe_module module = { .major = map->major, .minor = map->minor, .inode = map->inode };
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error;

	if (map->shared && map->writable)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "%s is mapped shared and writable: other processes would see the change",
					 map->path);
	error = kymo_open_mapped(kymo_process_pid(probes->process), map, &fd);
	if (!error)
		error = probe_cache_get(probe_events_cache(probes->wanted.options.events), fd, map->path, &module.file);
	if (error)
		return error;
	module.module = module.file->module;
	module.path = strdup(map->path);
	if (!module.path) {
		probes_module_deinit(probes, &module);
		return &kymo_error_no_memory;
	}
	if (kymo_module_bias(module.module, map->start, map->offset, &module.bias)) {
		if (is_loaded(probes, map)) { /* the program looks at its own file: nothing runs there */
			probes_module_deinit(probes, &module);
			return NULL;
		}
		error = kymo_error_create(KYMO_ERROR_BAD_DATA,
					  "no segment of %s fits its mapping at 0x%" PRIx64 " in process %d", map->path,
					  map->start, kymo_process_pid(probes->process));
		probes_module_deinit(probes, &module);
		return error;
	}
	find_ends(&module);
	if (!kymo_vec_push(&probes->modules, module)) {
		probes_module_deinit(probes, &module);
		return &kymo_error_no_memory;
	}
	return NULL;
}

struct kymo_error *probes_open_address(struct kymo_probes *probes, uint64_t address)
{
	struct probe_module module = { .path = strdup(KYMO_JIT_PATH) };
	struct kymo_error *error =
		module.path ? kymo_jit_open(probes->process, address, &module.jit) : &kymo_error_no_memory;

	if (error) {
		free(module.path);
		return error;
	}
	module.low = module.jit->low;
	module.high = module.jit->high;
	module.code = module.jit->code;
	if (!kymo_vec_push(&probes->modules, module)) {
		probes_module_deinit(probes, &module);
		return &kymo_error_no_memory;
	}
	return NULL;
}

struct kymo_error *probes_code(struct kymo_probes *probes, size_t i, struct kymo_code **ret)
{
	struct probe_module *module = &probes->modules.items[i];
	struct kymo_error *error = module->jit ? NULL : probe_cached_code(module->file, &module->code);

	if (!error)
		*ret = module->code;
	return error;
}

static bool read_object(struct kymo_probes *probes, struct kymo_module *module, const struct kymo_map *map,
			const char *name, void *data, size_t size)
{
	uint64_t vaddr, vsize;

	return !kymo_module_find_object(module, name, &vaddr, &vsize) &&
	       !kymo_process_read(probes->process, map->start + vaddr, data, size);
}

bool probes_read_object(struct kymo_probes *probes, const struct kymo_map *map, const char *name, void *data,
			size_t size)
{
	kymo_cleanup_close int fd = -1;
	const struct probe_module *module = module_of(probes, map);
	struct probe_cache *cache = probe_events_cache(probes->wanted.options.events);
	struct probe_cached *file;
	struct kymo_error *error;
	bool found;

	if (module && !module->is_replaced)
		return read_object(probes, module->module, map, name, data, size);
	error = kymo_open_mapped(kymo_process_pid(probes->process), map, &fd);
	if (!error)
		error = probe_cache_get(cache, fd, map->path, &file);
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	found = read_object(probes, file->module, map, name, data, size);
	probe_cache_put(cache, file);
	return found;
}

const struct kymo_map *probes_find_library(const struct kymo_maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].path[0] == '/' && !maps->items[i].offset &&
		    kymo_name_matches_file(name, maps->items[i].path, NULL))
			return &maps->items[i];
	return NULL;
}
