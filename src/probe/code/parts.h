/* What a function is made of. Private to the room. */
#ifndef KYMO_PROBE_CODE_PARTS_H
#define KYMO_PROBE_CODE_PARTS_H

#include "arch/code.h"
#include "sym/sym.h"

/*
 * The function at `vaddr`, called `name`, and then what the compiler split off from it ("name.cold"). A fresh array.
 * UNSAFE where it is not known where it ends.
 */
struct kymo_error *probe_parts_create(struct kymo_module *module, uint64_t vaddr, const char *name,
				      struct kymo_extent **ret, size_t *n_ret);

#endif
