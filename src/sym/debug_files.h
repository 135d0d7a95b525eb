/* Source files by their names. Private to the room. */
#ifndef KYMO_SYM_DEBUG_FILES_H
#define KYMO_SYM_DEBUG_FILES_H

#include "sym/debug_state.h"

/* Whether the path ends in `file`, at whole components. */
bool sym_file_is(const char *path, const char *file);

/* Whether a line of the unit may be of that file. */
bool sym_unit_has_file(const struct sym_unit *unit, const char *file);

/* NOT_FOUND: there is no such source file, with those whose names are nearest. */
struct kymo_error *sym_no_file(struct kymo_debug *debug, const char *file);

#endif
