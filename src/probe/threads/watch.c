/*
 * Libraries that come and go while a process runs.
 *
 * The dynamic linker calls an empty function for debuggers (_dl_debug_state) when it has mapped a library, before it
 * links it or runs its code. It also does so after it has unmapped one. A pad there asks the recorder to look
 * (wire/shared.h, struct kymo_wire_watch).
 */
#include "probe/threads/watch.h"

#include <string.h>

#include "arch/guard.h"
#include "base/cleanup.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/jit.h"
#include "probe/code/modules.h"
#include "probe/coexist/link.h"
#include "probe/coexist/peers.h"
#include "probe/coexist/text.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "proc/linker.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/sym.h"

/* The functions at whose entries watches are, and the files that they are of. */
static const struct {
	const char *function, *files[2];
} watched[] = {
	[PROBE_WATCH_LIBRARIES] = { "_dl_debug_state", { "ld-linux-x86-64", "ld-musl-x86_64" } },
	[PROBE_WATCH_HANDLERS] = { "sigaction", { "libc" } },
	[PROBE_WATCH_LIMITS] = { "prctl", { "libc", "ld-musl-x86_64" } },
};

static bool has_watched(enum probe_watched watches, const char *path)
{
	for (size_t i = 0; i < kymo_countof(watched[watches].files); i++)
		if (watched[watches].files[i] && kymo_name_matches_file(watched[watches].files[i], path, NULL))
			return true;
	return false;
}

bool probes_is_linker(const char *path)
{
	return has_watched(PROBE_WATCH_LIBRARIES, path);
}

static struct kymo_error *add_watch_in(struct kymo_probes *probes, size_t module_at, enum probe_watched watches,
				       bool *has_ret)
{
	struct probe_module *module = &probes->modules.items[module_at];
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct probe_site fresh = { .module = module_at, .is_watch = true, .watches = watches }, *site;
	const char *function = watched[watches].function;
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
	if (site->is_guard) { /* the function is nothing but its call, and there the guard of another recording is */
		probes_tell_no_watch(probes, watches);
		return NULL;
	}
	site->is_watch = !site->is_installed;
	site->watches = watches;
	return NULL;
}

/* In the first file that has the function, unless `has` says that there is one. */
static struct kymo_error *add_watch(struct kymo_probes *probes, enum probe_watched watches, bool *has)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->modules.n && !error && !*has; i++) {
		const struct probe_module *module = &probes->modules.items[i];

		if (!module->is_gone && !module->jit && has_watched(watches, module->path))
			error = add_watch_in(probes, i, watches, has);
	}
	return error;
}

struct kymo_error *probes_add_watch(struct kymo_probes *probes)
{
	return add_watch(probes, PROBE_WATCH_LIBRARIES, &probes->watch.has_watch);
}

struct kymo_error *probes_add_handler_watch(struct kymo_probes *probes)
{
	if (probes->wanted.options.no_rseq || probes->wanted.options.displace_faulting)
		return NULL;
	return add_watch(probes, PROBE_WATCH_HANDLERS, &probes->watch.has_handler_watch);
}

/* Whether one of the guards that will be in the text, or are in it, does what this watch would. */
static bool has_guard_of_limits(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		if (probes->sites.items[i].is_guard && !probes->sites.items[i].is_standby &&
		    !probes->sites.items[i].is_retired && kymo_guard_mutes(&probes->sites.items[i].plan))
			return true;
	return false;
}

struct kymo_error *probes_add_limits_watch(struct kymo_probes *probes)
{
	if (probes->wanted.options.traps || has_guard_of_limits(probes))
		return NULL;
	return add_watch(probes, PROBE_WATCH_LIMITS, &probes->watch.has_limits_watch);
}

bool probes_have_let_pass(const struct kymo_probes *probes)
{
	return !probes->is_starting && (probes->watch.were_let_pass ||
					__atomic_load_n(&probes->shared.data.head->watch.given_up, __ATOMIC_RELAXED));
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
