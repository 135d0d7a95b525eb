/* Which hits of a SPEC are recorded, where not all are: "sample 1/100", "sample 50/s", "first 10". */
#ifndef KYMO_PROBE_SPEC_SPEC_SAMPLE_H
#define KYMO_PROBE_SPEC_SPEC_SAMPLE_H

#include "probe/spec/spec_piece.h"

/* Whether such words begin at `at`, or after blanks there: one of these, and a number. A variable may have their
 * name. */
bool kymo_spec_is_sample(const char *at);

/* Parse them; `at` is behind them then. */
struct kymo_error *kymo_spec_sample_parse(const char *text, const char **at, struct kymo_spec *spec);

/* "1/100", "50/s", "first 10": of which hits it has records; a fresh string, NULL where it has of all, or memory is
 * out. */
char *kymo_spec_sample_text(const struct kymo_spec *spec);

/* How many of the specs have a count of their own. */
size_t kymo_specs_sampled(const struct kymo_spec *specs, size_t n);

#endif
