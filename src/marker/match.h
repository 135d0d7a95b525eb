/* Which markers a glob means. Pure, and without anything of a module. */
#ifndef KYMO_MARKER_MATCH_H
#define KYMO_MARKER_MATCH_H

#include <stdbool.h>

/* Whether `glob` means a marker of that provider and name in the module at `module_path` (as kymo_name_matches_file()
 * takes it; `soname` may be NULL): "GLOB" is matched with the name, "GLOB:GLOB" with the provider, or the module, and
 * the name. "GLOB|GLOB" means what either means. */
bool kymo_marker_matches(const char *glob, const char *module_path, const char *soname, const char *provider,
			 const char *name);

#endif
