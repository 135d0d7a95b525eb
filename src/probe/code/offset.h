/* Offsets of locations, against the extents of functions. */
#ifndef KYMO_PROBE_CODE_OFFSET_H
#define KYMO_PROBE_CODE_OFFSET_H

#include <stdint.h>

#include "base/error.h"

struct kymo_module;
struct kymo_spec;

/* NOT_FOUND where the function at `vaddr`, whose extent is known, ends before the offset of `spec`. */
struct kymo_error *kymo_check_offset(const struct kymo_spec *spec, struct kymo_module *module, uint64_t vaddr);

#endif
