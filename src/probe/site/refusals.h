/* Locations that get no probe, and what is told of them. */
#ifndef KYMO_PROBE_SITE_REFUSALS_H
#define KYMO_PROBE_SITE_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "probe/site/sites.h"

struct kymo_probes;
struct probe_site;
struct probe_switch;
struct probe_request;

/* What of a spec has no safe location, for one warning. */
struct probe_refusals {
	size_t n;                 /* locations */
	size_t n_switches;        /* of markers that can't be turned on */
	size_t n_reasons, length; /* of `reasons` */
	bool has_cut;             /* one of them is longer than what `reasons` has of it */
};

struct probe_refused {
	struct probe_refusals now, before; /* the installation that goes on now */
	size_t tried;                      /* locations */
	char reasons[1024];
	char *why;    /* the error: it has a location that is named exactly, or none left; or NULL */
	bool had_why; /* before the installation that goes on now */
};

/* After an error that is UNSAFE: what it says of spec `spec`, if that is a reason, too; else NULL. All specs that are
 * refused have one. The string is the probes'. */
const char *kymo_probes_refusal(const struct kymo_probes *probes, size_t spec);

/* Put a reason on the list, or keep it as the spec's error when the user named this very location. */
struct kymo_error *probes_refuse_location(struct kymo_probes *probes, size_t spec, size_t module, bool is_exact,
					  const char *location, const char *reason);

/* `error`, which it takes, is the spec's, unless that has one. */
struct kymo_error *probes_keep_error(struct kymo_probes *probes, size_t spec, struct kymo_error *error);

/* What probes_refuse_location() does for a marker that can't be turned on, on the list of each spec that means it;
 * never an error by itself. */
struct kymo_error *probes_refuse_switch(struct kymo_probes *probes, const struct probe_switch *item);

/* One request of a site, which is not refused yet. Markers are never named exactly. */
struct kymo_error *probes_refuse_request(struct kymo_probes *probes, const struct probe_site *site,
					 struct probe_request *request, const char *reason);

/* "no safe location" for all of a site's: an error for specs that name it exactly, a line in the warnings of others. */
struct kymo_error *probes_refuse(struct kymo_probes *probes, struct probe_site *site, const char *reason);

/* An installation begins: keep permanent refusals, and forget those for what third parties have patched; or go back to
 * that for another try. */
void probes_keep_refusals(struct kymo_probes *probes);
void probes_forget_refusals(struct kymo_probes *probes);

/* After planning: whether a return is refused that has other sites, which are refused then, too: planning has to begin
 * anew. */
bool probes_refuse_together(struct kymo_probes *probes);

/* The sentences (`why`) of all specs that have one, each in a line. */
struct kymo_error *probes_check_exact(struct kymo_probes *probes);

/* The same, with those that are refused everywhere. */
struct kymo_error *probes_check_refused(struct kymo_probes *probes);

/* Forget the errors of an earlier installation. */
void probes_forget_errors(struct kymo_probes *probes);

/* A warning: a watch of this kind is not there. */
void probes_tell_no_watch(struct kymo_probes *probes, enum probe_watched watches);

/* Warnings for specs that are refused in part; then counting begins anew. */
void probes_tell_refused(struct kymo_probes *probes);

#endif
