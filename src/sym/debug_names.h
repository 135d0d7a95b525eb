/* What is declared outside of functions, by name. Private to the room. */
#ifndef KYMO_SYM_DEBUG_NAMES_H
#define KYMO_SYM_DEBUG_NAMES_H

#include "sym/debug_state.h"

/* Read all names at the first use: a walk through all units. */
void sym_names_read(struct kymo_debug *debug);

/* The first name that is equal, then the next one after `last` (NULL: the first). NULL: there are no more. */
const struct sym_name *sym_name_find(struct kymo_debug *debug, const char *name, size_t length,
				     const struct sym_name *last);

/* The one that is most like this name: fewer than `least` bytes differ, and `fits` with its entry and `data`. NULL:
 * there is none. */
const struct sym_name *sym_name_near(struct kymo_debug *debug, const char *name, size_t length, unsigned int least,
				     bool (*fits)(const struct sym_name *name, int data), int data);

#endif
