/* Which records hold the stack pointer, so that entries and returns of functions are paired by it. */
#ifndef KYMO_PROBE_SPEC_SPEC_PAIR_H
#define KYMO_PROBE_SPEC_SPEC_PAIR_H

#include "probe/spec/spec.h"

/*
 * If some specs are for entries of functions and some for returns, records of both hold the stack pointer after their
 * arguments. That needs fewer than KYMO_EVENT_MAX_ARGS arguments: it tells what call a return ends, and which calls
 * were left without one.
 */
void kymo_specs_pair(struct kymo_spec *specs, size_t n);

#endif
