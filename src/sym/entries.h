/* Addresses that something other than code names. */
#ifndef KYMO_SYM_ENTRIES_H
#define KYMO_SYM_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_module;

/*
 * Every address inside of executable sections that something other than code names: function symbols, FDE starts, C++
 * landing pads (LSDA call-site tables), addends of relative relocations (also DT_RELR and packed ones), .init_array,
 * the ELF entry. Sorted, unique; may contain more than that, never less. Computed at first use. A damaged .eh_frame or
 * LSDA is an error.
 */
struct kymo_error *kymo_module_entries(struct kymo_module *module, const uint64_t **ret, size_t *n_ret);

#endif
