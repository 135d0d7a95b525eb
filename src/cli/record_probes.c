#include "cli/record_probes.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/durations.h"
#include "cli/output.h"
#include "cli/record_options.h"
#include "cli/spec_names.h"
#include "cli/spec_source.h"
#include "probe/spec/spec_marker.h"

static struct kymo_error *add_spec(struct cli_recording *recording, struct kymo_spec *spec)
{
	struct kymo_error *error = cli_spec_find_names(spec);

	if (!error && !kymo_vec_push(&recording->specs, *spec))
		error = &kymo_error_no_memory;
	if (!error)
		memset(spec, 0, sizeof(*spec));
	return error;
}

/* What is left out of `n` locations of one text, and why. */
static void warn_left_out(const struct kymo_spec *spec, size_t n_left, size_t n, const struct kymo_error *first)
{
	cli_warn("%zu of %zu locations of %s %s left out: %.*s", n_left, n, spec->source, n_left == 1 ? "is" : "are",
		 (int)strcspn(first->message, "\n"), first->message);
}

/* Add the specs of all locations that one text stands for. A location that lacks a variable which the text names is
 * left out, unless it is the only location. */
static struct kymo_error *add_specs(struct cli_recording *recording, struct cli_specs *specs, size_t *n_ret)
{
	struct kymo_error *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < specs->items.n; i++) {
		struct kymo_error *error;

		specs->items.items[i].shares_sample = n > 0;
		error = add_spec(recording, &specs->items.items[i]);
		if (error && error->code == KYMO_ERROR_NO_MEMORY) {
			kymo_error_destroy(first);
			return error;
		}
		n += !error;
		first = kymo_error_first(first, error);
	}
	*n_ret = n;
	if (!n)
		return first;
	if (first)
		warn_left_out(&recording->specs.items[recording->specs.n - 1], specs->items.n - n, specs->items.n,
			      first);
	kymo_error_destroy(first);
	return NULL;
}

struct kymo_error *cli_add_probe(struct cli_recording *recording, const char *text, enum cli_probe kind)
{
	kymo_cleanup(cli_specs_deinit) struct cli_specs specs = { 0 };
	struct kymo_aggr_pieces limits = { .n_limits = 0 };
	struct kymo_error *error = kind == CLI_PROBE_MARKER
					   ? cli_specs_parse(text, kymo_spec_parse_marker, &specs)
					   : cli_durations_parse(text, kind == CLI_PROBE_RETURN, &specs, &limits);
	size_t n = 0;

	if (!error)
		error = add_specs(recording, &specs, &n);
	if (!error) {
		cli_aggregations_note_probe(&recording->aggregations, &recording->specs, n);
		error = cli_aggregations_add_calls(&recording->aggregations, &limits, &recording->specs);
	}
	return error;
}
