/* Sites, sorted by address, and what is requested for at each. */
#include "probe/site/sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/switches.h"

static void request_deinit(struct probe_request *request)
{
	free(request->location);
	free(request->name);
}

void probes_site_deinit(struct probe_site *site)
{
	for (size_t i = 0; i < site->requests.n; i++)
		request_deinit(&site->requests.items[i]);
	kymo_vec_deinit(&site->requests);
}

const char *probes_site_name(const struct probe_site *site)
{
	return site->is_guard     ? "(guard)"
	       : site->requests.n ? site->requests.items[0].name
	       : site->is_watch   ? "(watch)"
	       : site->is_strike  ? "(strike)"
	       : site->is_catch   ? "(clone)"
				  : "(evicted)";
}

/* The first site that is not below `address`. */
static size_t site_index(const struct kymo_probes *probes, uint64_t address)
{
	size_t n = probes->sites.n;

	/* A glob hands its sites over in the order of addresses. */
	if (n && probes->sites.items[n - 1].address < address)
		return n;
	return kymo_partition_point(i, n, probes->sites.items[i].address < address);
}

struct probe_site *probes_site_at(struct kymo_probes *probes, uint64_t address)
{
	size_t at = site_index(probes, address);

	return at < probes->sites.n && probes->sites.items[at].address == address ? &probes->sites.items[at] : NULL;
}

struct kymo_error *probes_insert_site(struct kymo_probes *probes, const struct probe_site *site,
				      struct probe_site **ret)
{
	size_t at = site_index(probes, site->address);

	if (!kymo_vec_reserve(&probes->sites, probes->sites.n + 1))
		return &kymo_error_no_memory;
	memmove(&probes->sites.items[at + 1], &probes->sites.items[at], (probes->sites.n - at) * sizeof(*site));
	probes->sites.items[at] = *site;
	probes->sites.n++;
	*ret = &probes->sites.items[at];
	return NULL;
}

static void forget_site(struct kymo_probes *probes, struct probe_site *site)
{
	size_t at = (size_t)(site - probes->sites.items);

	probes_site_deinit(site);
	memmove(site, site + 1, (probes->sites.n - at - 1) * sizeof(*site));
	probes->sites.n--;
}

/* Whether the site can have one more request. */
static struct kymo_error *check_site(struct kymo_probes *probes, const struct probe_meaning *meaning,
				     const struct probe_site *site, const char *location, bool *refused_ret)
{
	*refused_ret = site->is_installed;
	if (site->is_installed)
		return probes_refuse_location(probes, meaning->spec, meaning->module, meaning->is_exact, location,
					      "there is a jump already that was put in earlier");
	*refused_ret = site->is_guard;
	if (site->is_guard)
		return probes_refuse_location(probes, meaning->spec, meaning->module, meaning->is_exact, location,
					      "one of kymo's own guards is there");
	*refused_ret = site->requests.n &&
		       (meaning->kind == KYMO_EVENT_SYSCALL || site->requests.items[0].kind == KYMO_EVENT_SYSCALL);
	if (*refused_ret)
		return probes_refuse_location(
			probes, meaning->spec, meaning->module, meaning->is_exact, location,
			"a system call is recorded there, or another probe is, and both cannot be");
	if (site->requests.n >= KYMO_PAD_MAX_EVENTS)
		return kymo_error_create(KYMO_ERROR_USAGE, "more than %d probes at %s of %s", KYMO_PAD_MAX_EVENTS,
					 location, probes->modules.items[meaning->module].path);
	return NULL;
}

struct kymo_error *probes_add_request(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t at,
				      const struct probe_request *wanted)
{
	struct probe_request request = *wanted;
	struct probe_site fresh = { .module = meaning->module }, *site;
	struct kymo_error *error = NULL;
	struct kymo_code *code;
	bool refused = false;

	error = probes_code(probes, meaning->module, &code);
	if (error)
		return error;
	fresh.address = probes->modules.items[meaning->module].bias + kymo_site_of(code->map, at);
	site = probes_site_at(probes, fresh.address);
	if (site && site->is_retired && site->module != meaning->module) {
		forget_site(probes, site); /* of a file that was mapped here before this one */
		site = NULL;
	}
	if (site)
		error = check_site(probes, meaning, site, request.location, &refused);
	if (error || refused)
		return error;
	request.spec = meaning->spec;
	request.kind = meaning->kind;
	request.is_exact = meaning->is_exact;
	request.location = strdup(wanted->location);
	request.name = strdup(wanted->name);
	error = request.location && request.name ? NULL : &kymo_error_no_memory;
	if (!error && !site)
		error = probes_insert_site(probes, &fresh, &site);
	if (!error && !kymo_vec_push(&site->requests, request))
		error = &kymo_error_no_memory;
	if (error)
		request_deinit(&request);
	else
		site->is_exact |= meaning->is_exact;
	return error;
}

/* Not in, and wanted, if not as a watch for libraries. What was refused once stays out. */
static bool is_pending_but_watch(const struct probe_site *site)
{
	bool wanted = site->is_guard || (site->is_watch && site->watches == PROBE_WATCH_HANDLERS);

	for (size_t i = 0; i < site->requests.n; i++)
		wanted |= !site->requests.items[i].is_refused;
	return wanted && !site->is_installed && !site->is_retired;
}

static bool is_pending(const struct probe_site *site)
{
	return is_pending_but_watch(site) ||
	       ((site->is_watch || site->is_strike) && !site->is_installed && !site->is_retired);
}

size_t kymo_probes_pending(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		n += is_pending(&probes->sites.items[i]);
	return n + probes_pending_switches(probes) + (probes->clones.n && !probes->sites.n);
}

bool probes_pending_but_watches(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		if (is_pending_but_watch(&probes->sites.items[i]))
			return true;
	return probes_pending_switches(probes) > 0;
}

size_t kymo_probes_n_sites(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		n += probes->sites.items[i].is_installed && probes->sites.items[i].requests.n;
	return n;
}
