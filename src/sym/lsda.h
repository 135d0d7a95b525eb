/* Landing pads. Private to the room. */
#ifndef KYMO_SYM_LSDA_H
#define KYMO_SYM_LSDA_H

#include <stdint.h>

#include "base/error.h"

struct kymo_module;

/* Call `see` for each landing pad. Needs the frames. */
struct kymo_error *sym_landing_pads(struct kymo_module *module, void (*see)(void *data, uint64_t vaddr), void *data);

#endif
