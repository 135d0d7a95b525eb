/* What expressions of DWARF say. Private to the room. */
#ifndef KYMO_SYM_EXPRESSION_H
#define KYMO_SYM_EXPRESSION_H

#include <stdint.h>

#include "sym/module_state.h"
#include "sym/unwind.h"

/* What an expression says, beginning with `initial` on its stack if that is given. Negative errno as
 * kymo_module_unwind(). */
int sym_expression(struct sym_rules expression, const struct kymo_frame *frame, const uint64_t *initial,
		   kymo_frame_read *read, void *context, uint64_t *ret);

#endif
