/* Landing pads: where the unwinder enters a function in its middle. */
#ifndef KYMO_SYM_LSDA_H
#define KYMO_SYM_LSDA_H

#include <stdint.h>

#include "base/error.h"

struct kymo_module;

/* Call `see` for each landing pad, as the exception tables name them: in any order, more than once too, and at any
 * address where a table lies. BAD_DATA: a table or .eh_frame is damaged; some may have been told. */
struct kymo_error *kymo_module_landing_pads(struct kymo_module *module, void (*see)(void *data, uint64_t vaddr),
					    void *data);

#endif
