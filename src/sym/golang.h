/* Code and names of Go's compiler. */
#ifndef KYMO_SYM_GOLANG_H
#define KYMO_SYM_GOLANG_H

#include <stdint.h>

#include "base/error.h"

struct kymo_module;

/*
 * The code that runs on stacks of Go's, which its functions let grow: all that its compiler made, [low, high) as
 * linked, empty where there is none. `left_ret` gets how many bytes of a stack are below the frame of a function that
 * has looked whether it has to grow.
 */
struct kymo_error *kymo_module_small_stacks(struct kymo_module *module, uint64_t *low_ret, uint64_t *high_ret,
					    uint32_t *left_ret);

/* ---- private to the room --------------------------------------------------------------------- */

/* Fill in `go_functions` and `small_stacks`. */
struct kymo_error *sym_go_read(struct kymo_module *module);

#endif
