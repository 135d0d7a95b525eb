/*
 * Modules: files that the process has mapped, which come and go while it runs. A library that is loaded again at the
 * same address finds its pads as they were: only its text is written.
 */
#include "probe/install/mapped.h"

#include <string.h>

#include "base/cleanup.h"
#include "probe/code/cache.h"
#include "probe/code/jit.h"
#include "probe/code/modules.h"
#include "probe/coexist/link.h"
#include "probe/coexist/text.h"
#include "probe/memory/sessions.h"
#include "probe/probes.h"
#include "probe/resolve/files.h"
#include "probe/resolve/markers.h"
#include "probe/resolve/resolve.h"
#include "probe/resolve/syscalls.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "probe/site/warning.h"
#include "probe/snapshot/snapshot.h"
#include "probe/spec/spec.h"
#include "probe/threads/readable.h"
#include "probe/threads/strikes.h"
#include "probe/threads/threads.h"
#include "probe/threads/watch.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/maps.h"

/* ---- what comes and goes --------------------------------------------------------------------- */

/* The mapping that the module begins with, or NULL. */
static const struct kymo_map *mapping_of(const struct probe_module *module, const struct kymo_maps *maps)
{
	const struct kymo_map *map = kymo_maps_at(maps, module->low);

	return map && map->start == module->low && map->inode == module->inode && map->major == module->major &&
			       map->minor == module->minor
		       ? map
		       : NULL;
}

enum version {
	VERSION_UNKNOWN,
	VERSION_SAME,
	VERSION_OTHER, /* also when it only has lost its name */
};

/* Of the file of `map`. One that was removed leaves its inode to the next one. */
static enum version version_of(const struct kymo_probes *probes, const struct probe_module *module,
			       const struct kymo_map *map)
{
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error = kymo_open_mapped(kymo_process_pid(probes->process), map, &fd);

	if (error) {
		kymo_error_destroy(error);
		return VERSION_UNKNOWN;
	}
	return probe_cached_is_of(module->file, fd) ? VERSION_SAME : VERSION_OTHER;
}

/* What could not be read may have been closed since mappings were read, or its process has ended. */
static bool is_mapped_now(const struct kymo_probes *probes, const struct probe_module *module)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(probes->process, &maps);
	bool is_there = !error && mapping_of(module, &maps);

	if (!error)
		kymo_maps_deinit(&maps);
	kymo_error_destroy(error);
	return is_there;
}

/* And is not a jump of this recording's: a file may have been written over without what is mapped of it. */
static bool is_file_text(const struct kymo_probes *probes, const struct kymo_maps *maps, const struct probe_site *site,
			 const uint8_t *now)
{
	const struct kymo_map *map = kymo_maps_at(maps, site->address);

	return map &&
	       (site->link == site->address ||
		!probe_leads_to_link(probes->process, site->address, site->plan.patch_size, site->link)) &&
	       kymo_is_of_mapped_file(kymo_process_pid(probes->process), map, site->address, now,
				      site->plan.patch_size);
}

/*
 * Closed and opened again between two looks: its text is the file's, as that was or is now. Or, if the journals of
 * peers are known, a thread may have waited for another recording instead, whose jump is there. That the file has
 * changed proves nothing: it may have got another name.
 */
static bool has_lost_its_jumps(const struct kymo_probes *probes, size_t module_at,
			       const struct probe_snapshot *snapshot)
{
	const struct probe_module *module = &probes->modules.items[module_at];

	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];
		uint8_t now[KYMO_PATCH_MAX];

		if (site->module != module_at || !site->is_installed || site->is_standby || site->is_guard)
			continue;
		if (kymo_process_read(probes->process, site->address, now, site->plan.patch_size))
			return !is_mapped_now(probes, module);
		if (!memcmp(now, site->plan.original, site->plan.patch_size))
			return true;
		if (!snapshot->has_peers || module->jit)
			return false;
		return probes_peers_leave_out(&snapshot->peers, site->address, site->pad + site->layout.inner) ||
		       is_file_text(probes, &snapshot->maps, site, now);
	}
	return false;
}

static struct kymo_error *retire(struct kymo_probes *probes, size_t module_at)
{
	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];
		size_t size =
			site->plan.lock_size > site->plan.patch_size ? site->plan.lock_size : site->plan.patch_size;

		/* Sites that were never in, too: they would be looked for where nothing is, or another file. */
		if (site->module != module_at || site->is_retired)
			continue;
		for (enum probe_text_mark mark = 0; site->is_installed && mark < N_TEXT_MARKS; mark++)
			if (!probe_text_mark(&probes->text, mark, site->address, size, false))
				return &kymo_error_no_memory;
		site->is_installed = site->is_revived = false;
		site->is_retired = true;
	}
	probes->changes++;
	probes_shut_readable(probes);
	probes_retire_switches(probes, module_at, true);
	probes->modules.items[module_at].is_gone = true;
	return NULL;
}

static void revive(struct kymo_probes *probes, size_t module_at)
{
	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];

		if (site->module != module_at || !site->is_retired)
			continue;
		site->is_retired = false;
		site->is_revived =
			site->is_planned && !site->behind; /* a pad of another recording's after it may be gone */
	}
	probes_retire_switches(probes, module_at, false);
	probes->modules.items[module_at].is_gone = false;
}

/* Code that is gone does not come back: what is there later is another's. */
static bool is_jit_there(const struct probe_module *module, const struct kymo_maps *maps)
{
	const struct kymo_map *map = kymo_maps_at(maps, module->low);

	return map && kymo_jit_is_map(map);
}

static struct kymo_error *note_mapping(struct kymo_probes *probes, size_t module_at,
				       const struct probe_snapshot *snapshot)
{
	const struct kymo_maps *maps = &snapshot->maps;
	struct probe_module *module = &probes->modules.items[module_at];
	const struct kymo_map *map = mapping_of(module, maps);
	struct kymo_error *error = NULL;

	if (!module->is_gone && (!(module->jit ? is_jit_there(module, maps) : map != NULL) ||
				 has_lost_its_jumps(probes, module_at, snapshot)))
		error = retire(probes, module_at);
	if (error || module->jit || !map || !module->is_gone || module->is_replaced)
		return error;
	switch (version_of(probes, module, map)) {
	case VERSION_SAME:
		revive(probes, module_at);
		return NULL;
	case VERSION_OTHER:
		module->is_replaced = true;
		return NULL;
	case VERSION_UNKNOWN:
		break;
	}
	return NULL;
}

static struct kymo_error *note_mappings(struct kymo_probes *probes, const struct probe_snapshot *snapshot)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->modules.n && !error; i++)
		error = note_mapping(probes, i, snapshot);
	return error;
}

/* ---- what specs mean there ------------------------------------------------------------------- */

static bool has_marker_specs(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (probes->wanted.specs[i].marker)
			return true;
	return false;
}

/* The files of new mappings, and what specs mean in each. */
static struct kymo_error *resolve_files(struct kymo_probes *probes, const struct kymo_maps *maps)
{
	const bool has_syscalls = probes_has_syscalls(probes),
		   has_all = has_syscalls || has_marker_specs(probes) || probes->readable.is_wanted;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < maps->n && !error; i++) {
		const struct kymo_map *map = &maps->items[i];
		const bool is_wanted = probes_is_wanted_file(probes, map);
		const size_t known = probes->modules.n;

		if (!map->executable || map->path[0] != '/' ||
		    (!is_wanted && (!has_all || kymo_is_shared_map(map) || kymo_is_jumps_map(map))) ||
		    probes_is_known(probes, map))
			continue;
		error = probes_open_module(probes, map);
		if (error && !is_wanted) { /* whatever it is, no spec has named it */
			if (has_syscalls)
				probes_warn(probes, "system calls of %s are not recorded: %s", map->path,
					    error->message);
			kymo_error_destroy(error);
			error = NULL;
		}
		if (!error && probes->modules.n > known)
			error = probes_resolve_module(probes, known);
	}
	if (has_syscalls)
		probes_tell_other_code(probes, maps);
	return error;
}

/* An address is looked at once: what the program puts there later is other code. */
static struct kymo_error *resolve_addresses(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->wanted.n_specs && !error; i++) {
		if (!probes->wanted.specs[i].address || probes->per_spec.met[i] ||
		    !probes->wanted.options.has_addresses)
			continue;
		error = probes_open_address(probes, probes->wanted.specs[i].address);
		if (!error)
			error = probes_resolve_address(probes, i, probes->modules.n - 1);
	}
	return error;
}

struct kymo_error *kymo_probes_resolve(struct kymo_probes *probes)
{
	struct probe_snapshot snapshot;
	struct kymo_error *error = probe_snapshot_take_mapped(probes, &snapshot);

	if (error)
		return error;
	error = note_mappings(probes, &snapshot);
	if (!error)
		error = resolve_files(probes, &snapshot.maps);
	probe_snapshot_deinit(&snapshot);
	if (!error)
		error = resolve_addresses(probes);
	if (!error)
		error = probes_check_exact(probes);
	if (!error)
		error = probes_add_watch(probes);
	if (!error)
		error = probes_add_handler_watch(probes);
	if (!error)
		error = probes_add_guards(probes);
	if (!error)
		error = probes_add_strikes(probes);
	return error ? error : probes_add_limits_watch(probes);
}

/* ---- what was not found ---------------------------------------------------------------------- */

struct kymo_error *kymo_probes_check_found(struct kymo_probes *probes, size_t spec)
{
	struct kymo_error *error;
	struct kymo_maps maps;

	if (!probes->per_spec.met[spec] && probes->wanted.specs[spec].marker)
		return probes_no_such_marker(probes, probes->wanted.specs[spec].marker);
	if (probes->per_spec.met[spec] || !probes->wanted.specs[spec].file)
		return NULL;
	error = probes_check_file(probes->wanted.specs[spec].file);
	if (!error)
		error = kymo_maps_read(probes->pid, &maps);
	if (error)
		return error;
	error = probes_not_mapped(probes, probes->wanted.specs[spec].file, &maps);
	kymo_maps_deinit(&maps);
	return error;
}

struct kymo_error *kymo_probes_check_all_found(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->wanted.n_specs && !error; i++)
		error = kymo_probes_check_found(probes, i);
	return error;
}
