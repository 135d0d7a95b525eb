/* Markers: names, and what is recorded of SDT probes by the arguments that they hand over. */
#ifndef KYMO_PROBE_SPEC_SPEC_MARKER_H
#define KYMO_PROBE_SPEC_SPEC_MARKER_H

#include "probe/spec/spec.h"

/*
 * Markers by name: GLOB, or PROVIDER:GLOB, or MODULE:GLOB. After it may be a FILTER and ARGs for SDT probes, in which
 * arg0 or $arg1 is the first argument that the probe hands over. USAGE for an empty name.
 */
struct kymo_error *kymo_spec_parse_marker(const char *text, struct kymo_spec *ret);

/* The same spec for a location at which an SDT probe hands its arguments over as `operands`; at least
 * n_operands_needed. USAGE. */
struct kymo_error *kymo_spec_at_operands(const struct kymo_spec *spec, const struct kymo_fetch *operands, size_t n,
					 struct kymo_spec *ret);

#endif
