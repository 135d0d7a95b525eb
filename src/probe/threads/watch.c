/*
 * Libraries that come and go while a process runs.
 *
 * The dynamic linker calls an empty function for debuggers (_dl_debug_state) when it has mapped a library, before it
 * links it or runs anything of it, and after it has unmapped one. A pad there asks the recorder to look (wire/shared.h,
 * struct kymo_wire_watch).
 *
 * A library that is loaded again at the same address finds its pads as they were: only its text is written.
 */
#include "probe/threads/watch.h"

#include <string.h>

#include "base/cleanup.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/jit.h"
#include "probe/code/modules.h"
#include "probe/coexist/link.h"
#include "probe/coexist/peers.h"
#include "probe/coexist/text.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"

#define DEBUG_FUNCTION "_dl_debug_state"
#define SIGACTION "sigaction"

bool probes_is_linker(const char *path)
{
	return kymo_name_matches_file("ld-linux-x86-64", path, NULL) ||
	       kymo_name_matches_file("ld-musl-x86_64", path, NULL);
}

static struct kymo_error *add_watch_in(struct kymo_probes *probes, size_t module_at, const char *function,
				       bool *has_ret)
{
	struct probe_module *module = &probes->modules.items[module_at];
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct probe_site fresh = { .module = module_at,
				    .is_watch = true,
				    .is_sigaction = !strcmp(function, SIGACTION) },
			  *site;
	struct kymo_code *code;
	struct kymo_error *error;
	size_t n = 0;

	error = kymo_module_find(module->module, function, &found, &n);
	if (n && strcmp(found[0]->name, function) != 0)
		return error; /* a function of C++ that has the name in its source is another one */
	if (!error && n)
		error = probes_code(probes, module_at, &code);
	if (error || !n)
		return error;
	fresh.address = module->bias + kymo_site_of(code->map, found[0]->vaddr);
	site = probes_site_at(probes, fresh.address);
	*has_ret = true;
	if (!site)
		return probes_insert_site(probes, &fresh, &site);
	site->is_watch = !site->installed;
	site->is_sigaction = fresh.is_sigaction;
	return NULL;
}

struct kymo_error *probes_add_watch(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->modules.n && !error && !probes->watch.has_watch; i++)
		if (!probes->modules.items[i].is_gone && probes_is_linker(probes->modules.items[i].path))
			error = add_watch_in(probes, i, DEBUG_FUNCTION, &probes->watch.has_watch);
	return error;
}

struct kymo_error *probes_add_handler_watch(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	if (probes->options.no_rseq || probes->options.displace_faulting)
		return NULL;
	for (size_t i = 0; i < probes->modules.n && !error && !probes->watch.has_handler_watch; i++)
		if (!probes->modules.items[i].is_gone && !probes->modules.items[i].jit &&
		    kymo_name_matches_file("libc", probes->modules.items[i].path, NULL))
			error = add_watch_in(probes, i, SIGACTION, &probes->watch.has_handler_watch);
	return error;
}

bool probes_have_let_pass(const struct kymo_probes *probes)
{
	return !probes->is_starting && (probes->watch.were_let_pass ||
					__atomic_load_n(&probes->shared.data.head->watch.given_up, __ATOMIC_RELAXED));
}

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
 * Closed and opened again while nobody looked: its text is the file's, as that was or is now. Or, where `others` are
 * given, who did not wait for this recording may have waited for another one, whose jump is there. That the file has
 * changed proves nothing: it may have got another name.
 */
static bool has_lost_its_jumps(const struct kymo_probes *probes, size_t module_at, const struct kymo_maps *maps,
			       const struct probe_peers *peers)
{
	const struct probe_module *module = &probes->modules.items[module_at];

	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];
		uint8_t now[KYMO_PATCH_MAX];

		if (site->module != module_at || !site->installed || site->is_standby || site->is_guard)
			continue;
		if (kymo_process_read(probes->process, site->address, now, site->plan.patch_size))
			return !is_mapped_now(probes, module);
		if (!memcmp(now, site->plan.original, site->plan.patch_size))
			return true;
		if (!peers || module->jit)
			return false;
		return probes_peers_leave_out(peers, site) || is_file_text(probes, maps, site, now);
	}
	return false;
}

static struct kymo_error *retire(struct kymo_probes *probes, size_t module_at)
{
	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];
		size_t size =
			site->plan.lock_size > site->plan.patch_size ? site->plan.lock_size : site->plan.patch_size;

		/* Those that were never in, too: they would be looked for where nothing is, or another file. */
		if (site->module != module_at || site->is_retired)
			continue;
		for (enum probe_text_mark mark = 0; site->installed && mark < N_TEXT_MARKS; mark++)
			if (!probe_text_mark(&probes->text, mark, site->address, size, false))
				return &kymo_error_no_memory;
		site->installed = site->is_revived = false;
		site->is_retired = true;
	}
	probes->changes++;
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
			site->is_planned && !site->behind; /* a pad of another recording's behind it may be gone */
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

static struct kymo_error *note_mapping(struct kymo_probes *probes, size_t module_at, const struct kymo_maps *maps,
				       const struct probe_peers *peers)
{
	struct probe_module *module = &probes->modules.items[module_at];
	const struct kymo_map *map = mapping_of(module, maps);
	struct kymo_error *error = NULL;

	if (!module->is_gone && (!(module->jit ? is_jit_there(module, maps) : map != NULL) ||
				 has_lost_its_jumps(probes, module_at, maps, peers)))
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

struct kymo_error *probes_note_mappings(struct kymo_probes *probes, const struct kymo_maps *maps)
{
	const bool is_late = kymo_probes_are_watching(probes) && probes_have_let_pass(probes);
	struct probe_peers peers = { .n = 0 };
	struct kymo_error *error = is_late ? probes_peers_read(probes, &peers) : NULL;

	for (size_t i = 0; i < probes->modules.n && !error; i++)
		error = note_mapping(probes, i, maps, is_late ? &peers : NULL);
	probes_peers_deinit(&peers);
	return error;
}

/* ---- for the recorder ------------------------------------------------------------------------ */

bool kymo_probes_are_watching(const struct kymo_probes *probes)
{
	return probes->watch.has_watch && probes->has_shared;
}

void kymo_probes_watch(struct kymo_probes *probes)
{
	probes->watch.is_watched = true;
	if (kymo_probes_are_watching(probes) && !probes->is_starting)
		__atomic_store_n(&probes->shared.data.head->watch.given_up, 0, __ATOMIC_RELEASE);
	if (probes->has_shared)
		__atomic_store_n(&probes->shared.data.head->handlers.given_up, 0, __ATOMIC_RELEASE);
}

void probes_watch_from_here(struct kymo_probes *probes)
{
	struct kymo_wire_watch *watch;

	if (!kymo_probes_are_watching(probes))
		return;
	watch = &probes->shared.data.head->watch;
	probes->watch.n_answers = probes->watch.n_on_time =
		__atomic_load_n(&watch->requests, __ATOMIC_ACQUIRE) + kymo_process_is_linking(probes->process);
	__atomic_store_n(&watch->answers, probes->watch.n_answers, __ATOMIC_RELAXED);
	if (probes->watch.is_watched)
		__atomic_store_n(&watch->given_up, 0, __ATOMIC_RELEASE);
}
