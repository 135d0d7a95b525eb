#include "probe/threads/strikes.h"

#include "arch/pad.h"
#include "arch/syscall_pad.h"
#include "base/cleanup.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/probes.h"
#include "probe/site/sites.h"

bool probes_may_strike(const struct kymo_syscall_site *at)
{
	return at->number < 0 || kymo_pad_strikes((uint32_t)at->number);
}

struct kymo_error *probes_calls_of(struct kymo_probes *probes, size_t module_at,
				   const struct kymo_syscall_site **sites_ret, size_t *n_ret)
{
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, module_at, &code);

	return error ? error : probe_cached_syscalls(probes->modules.items[module_at].file, sites_ret, n_ret);
}

static struct kymo_error *add_strike(struct kymo_probes *probes, size_t module_at, uint64_t address)
{
	struct probe_site fresh = { .module = module_at, .address = address, .is_strike = true }, *site;

	site = probes_site_at(probes, address);
	if (!site)
		return probes_insert_site(probes, &fresh, &site);
	if (!site->is_installed && !site->was_strike && !site->is_guard &&
	    (!site->requests.n || site->requests.items[0].kind == KYMO_EVENT_SYSCALL))
		site->is_strike = true;
	return NULL;
}

struct kymo_error *probes_add_strikes(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	if (!probes->readable.is_wanted || !probes->wanted.options.fast_reads || probes->readable.is_refused)
		return NULL;
	for (size_t i = 0; i < probes->modules.n && !error; i++) {
		const struct probe_module *module = &probes->modules.items[i];
		const struct kymo_syscall_site *sites = NULL;
		size_t n = 0;

		if (module->is_gone || module->jit || module->has_strikes)
			continue;
		error = probes_calls_of(probes, i, &sites, &n);
		for (size_t k = 0; k < n && !error; k++)
			if (probes_may_strike(&sites[k]) && !sites[k].reason)
				error = add_strike(probes, i, module->bias + sites[k].vaddr);
		probes->modules.items[i].has_strikes = !error;
	}
	return error;
}

void probes_drop_strikes(struct kymo_probes *probes)
{
	size_t kept = 0;

	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];

		if (site->is_strike && !site->is_installed && !site->is_retired && !site->requests.n)
			continue;
		site->is_strike &= site->is_installed || site->is_retired;
		probes->sites.items[kept++] = *site;
	}
	probes->sites.n = kept;
	for (size_t i = 0; i < probes->modules.n; i++)
		probes->modules.items[i].has_strikes = false;
}
