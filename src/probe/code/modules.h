/* Files that the process has mapped executable. Private to the room. */
#ifndef KYMO_PROBE_CODE_MODULES_H
#define KYMO_PROBE_CODE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_code;
struct kymo_jit;
struct kymo_map;
struct kymo_maps;
struct kymo_module;
struct kymo_probes;
struct probe_cached;

/* A file that the process has mapped executable and some spec names; or the code around one address in memory of no
 * file. */
struct probe_module {
	uint32_t major, minor;
	uint64_t inode, bias;
	uint64_t low, high; /* where it is mapped, from end to end */
	char *path;
	struct probe_cached *file;
	struct kymo_module *module; /* the file's, as is the code: that is made when the first site is planned */
	struct kymo_code *code;
	struct kymo_jit
		*jit; /* else NULL; with it, there are no file, module and inode, and addresses are the process's own */
	bool has_strikes; /* its calls that may take memory away are sites (strikes.c) */
	bool is_gone;     /* not mapped any more */
	bool is_replaced; /* and there is another version of its file in its place */
};

/* Whether `map` is of one of the modules. */
bool probes_is_known(const struct kymo_probes *probes, const struct kymo_map *map);

/* The file of `map` becomes the last module; none, where the program has only mapped once more what it has loaded. */
struct kymo_error *probes_open_module(struct kymo_probes *probes, const struct kymo_map *map);

/* So does the code around `address`, in memory of no file. Errors are those of kymo_jit_open(). */
struct kymo_error *probes_open_address(struct kymo_probes *probes, uint64_t address);

void probes_module_deinit(struct kymo_probes *probes, struct probe_module *module);

/* The code of the module with index `i`, made if need be. */
struct kymo_error *probes_code(struct kymo_probes *probes, size_t i, struct kymo_code **ret);

/* The first mapping of a library that is called so ("libc"), or NULL. */
const struct kymo_map *probes_find_library(const struct kymo_maps *maps, const char *name);

/* The value of a data object of a mapped library, by name; false when there is none of that size to be read. */
bool probes_read_object(struct kymo_probes *probes, const struct kymo_map *map, const char *name, void *data,
			size_t size);

#endif
