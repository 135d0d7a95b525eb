/* Which register returns a value. Private to the room. */
#ifndef KYMO_SYM_DEBUG_RETURNED_H
#define KYMO_SYM_DEBUG_RETURNED_H

#include "sym/debug_state.h"

/* What returns a value of the type that the entry has (DW_AT_type); `is_c_like`: the function is one of C or C++. */
enum kymo_returned sym_returned(struct kymo_debug *debug, Dwarf_Die *function, bool is_c_like);

#endif
