/* Source files by their names. Private to the room. */
#ifndef KYMO_SYM_DEBUG_FILES_H
#define KYMO_SYM_DEBUG_FILES_H

#include "sym/debug_state.h"

/* Whether the path of a source of the unit ends in `file`, at whole components. A path that is relative, as the line
 * table has it, is from the directory in which the unit was compiled. */
bool sym_unit_file_is(struct kymo_debug *debug, const struct sym_unit *unit, const char *path, const char *file);

/* The path with that directory; or itself, where it is absolute, the unit does not tell the directory, or the paths of
 * `debug` are too long or too many. Lives with `debug`. sym_debug_end() tells that there is no memory. */
const char *sym_unit_path(struct kymo_debug *debug, const struct sym_unit *unit, const char *path);

/* Whether a line of the unit may be of that file. */
bool sym_unit_has_file(struct kymo_debug *debug, const struct sym_unit *unit, const char *file);

/* NOT_FOUND: there is no such source file, with those whose names are nearest. */
struct kymo_error *sym_no_file(struct kymo_debug *debug, const char *file);

#endif
