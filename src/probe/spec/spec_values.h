/* What a SPEC has after its location. */
#ifndef KYMO_PROBE_SPEC_SPEC_VALUES_H
#define KYMO_PROBE_SPEC_SPEC_VALUES_H

#include "base/error.h"

struct kymo_spec;

/* Filters, samples and arguments of `spec`, from `at` to the end of `text`. */
struct kymo_error *kymo_spec_values_parse(const char *text, const char *at, struct kymo_spec *spec);

#endif
