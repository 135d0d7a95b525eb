#include "probe/plan/writes.h"

#include <string.h>

#include "base/cleanup.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/spec/spec.h"
#include "probe/spec/spec_write.h"

static bool returns(const struct kymo_spec *spec)
{
	for (size_t i = 0; i < spec->n_args; i++)
		if (spec->args[i].fetch.writes == KYMO_WRITE_RETURN)
			return true;
	return false;
}

/* Code that is entered without a return address on top of the stack. */
static bool has_no_caller(const char *location)
{
	static const char *const names[] = { "_start", "_dl_start_user", "__restore_rt", "__restore" };

	for (size_t i = 0; i < kymo_countof(names); i++)
		if (!strcmp(location, names[i]))
			return true;
	return strstr(location, ".cold");
}

static const char *why_not(const struct probe_site *site, const struct kymo_spec *spec, const char *location,
			   bool is_joined, bool has_writer)
{
	if (is_joined)
		return "another recording has a probe here, and one that writes registers has to be the first";
	if (site->is_watch)
		return "kymo itself has a probe here, and one that writes registers has to be alone";
	if (has_writer)
		return "another probe writes registers here";
	if (returns(spec) && has_no_caller(location))
		return "it is not called, so it cannot return";
	return NULL;
}

struct kymo_error *probes_refuse_writes(struct kymo_probes *probes, struct probe_site *site, bool is_joined)
{
	struct kymo_error *error = NULL;
	bool has_writer = false;

	for (size_t i = 0; i < site->requests.n && !error && !probes->wanted.options.traps; i++) {
		struct probe_request *request = &site->requests.items[i];
		const struct kymo_spec *spec = &probes->wanted.specs[request->spec];
		const char *why;

		if (request->is_refused || !kymo_spec_writes(spec))
			continue;
		why = why_not(site, spec, request->location, is_joined, has_writer);
		if (why)
			error = probes_refuse_request(probes, site, request, why);
		else
			has_writer = true;
	}
	return error;
}
