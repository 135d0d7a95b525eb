/* The files that specs name. */
#ifndef KYMO_PROBE_RESOLVE_FILES_H
#define KYMO_PROBE_RESOLVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_map;
struct kymo_probes;

/* The file that a spec's name leads to from here, through PATH and links; inode 0: none. */
struct probe_file {
	uint32_t major, minor;
	uint64_t inode;
};

/* NOT_FOUND for the first spec that has met no file yet, with what the process has mapped. */
struct kymo_error *kymo_probes_check_all_found(struct kymo_probes *probes);

/* The same for one spec. */
struct kymo_error *kymo_probes_check_found(struct kymo_probes *probes, size_t spec);

/* Look up the files of all specs. */
struct kymo_error *probes_files_init(struct kymo_probes *probes);

/* Whether `map` is of the file that spec `spec_at` leads to. Names that fit (kymo_name_matches_file()) mean it too. */
bool probes_is_file(const struct kymo_probes *probes, size_t spec_at, const struct kymo_map *map);

/* Whether some spec, or kymo itself, wants something in the file of `map`; by its name alone. */
bool probes_is_wanted_file(const struct kymo_probes *probes, const struct kymo_map *map);

#endif
