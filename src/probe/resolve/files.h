/* The files that specs name. */
#ifndef KYMO_PROBE_RESOLVE_FILES_H
#define KYMO_PROBE_RESOLVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_map;
struct kymo_maps;
struct kymo_probes;
struct probe_module;

/* Look up the files of all specs. */
struct kymo_error *probes_files_init(struct kymo_probes *probes);

/* Whether the module is of the file that spec `spec_at` leads to. Names that fit (kymo_name_matches_file()) mean it
 * too. */
bool probes_is_file(const struct kymo_probes *probes, size_t spec_at, const struct probe_module *module);

/* Whether some spec, or kymo itself, wants something in the file of `map`; by its name alone. */
bool probes_is_wanted_file(const struct kymo_probes *probes, const struct kymo_map *map);

/* NOT_FOUND: no file can be what `file` names, a path or a line of source. */
struct kymo_error *probes_check_file(const char *file);

/* NOT_FOUND: no mapping is of a file that `file` names; with those that there are. */
struct kymo_error *probes_not_mapped(const struct kymo_probes *probes, const char *file, const struct kymo_maps *maps);

#endif
