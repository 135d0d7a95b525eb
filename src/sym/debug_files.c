#include "sym/debug_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/find.h"
#include "sym/module.h"

#define PATHS_MAX (16u << 20) /* bytes: rows of a damaged line table may change between two files each time */
#define NEAR_MAX 3
#define NAME_MAX_NEAR 256

/* Whether the path ends in `file`, at whole components. */
static bool ends_in(const char *path, size_t n_path, const char *file, size_t n)
{
	if (!n || n > n_path || strncmp(path + n_path - n, file, n) != 0)
		return false;
	return n == n_path || *file == '/' || path[n_path - n - 1] == '/';
}

/* The directory that relative paths of the unit are from, or NULL. */
static const char *folder_of(struct kymo_debug *debug, const struct sym_unit *unit)
{
	Dwarf_Die die = unit->skeleton;

	return sym_die_string(debug, &die, DW_AT_comp_dir);
}

bool sym_unit_file_is(struct kymo_debug *debug, const struct sym_unit *unit, const char *path, const char *file)
{
	const size_t n_path = strlen(path);
	const char *folder;
	size_t n;

	while (!strncmp(file, "./", 2))
		file += 2;
	n = strlen(file);
	if (n <= n_path || *path == '/')
		return ends_in(path, n_path, file, n);
	folder = n > n_path + 1 && file[n - n_path - 1] == '/' && !strcmp(file + n - n_path, path)
			 ? folder_of(debug, unit)
			 : NULL;
	return folder && ends_in(folder, strlen(folder), file, n - n_path - 1);
}

const char *sym_unit_path(struct kymo_debug *debug, const struct sym_unit *unit, const char *path)
{
	const char *folder = path && *path != '/' ? folder_of(debug, unit) : NULL;
	size_t size;
	char *whole;

	if (!folder || !*folder)
		return path;
	size = strlen(folder) + strlen(path) + 2;
	if (size > PATH_MAX || debug->paths_size + size > PATHS_MAX)
		return path;
	debug->paths_size += size;
	whole = sym_debug_alloc(debug, size);
	if (whole)
		snprintf(whole, size, "%s/%s", folder, path);
	return whole ? whole : path;
}

bool sym_unit_has_file(struct kymo_debug *debug, const struct sym_unit *unit, const char *file)
{
	Dwarf_Die die = unit->skeleton;
	Dwarf_Files *files;
	size_t n;

	if (unit->is_partial || dwarf_getsrcfiles(&die, &files, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);

		if (path && sym_unit_file_is(debug, unit, path, file))
			return true;
	}
	return false;
}

/* ---- the nearest ----------------------------------------------------------------------------- */

struct nearest {
	const char *wanted;
	const char *names[NEAR_MAX]; /* the nearest first */
	unsigned int distances[NEAR_MAX];
	size_t n;
};

static void offer(struct nearest *nearest, const char *name)
{
	const size_t wanted = strlen(nearest->wanted), length = strlen(name);
	const unsigned int limit = (unsigned int)wanted / 2;
	unsigned int distance;
	size_t i;

	if (!length || length > NAME_MAX_NEAR || wanted > NAME_MAX_NEAR)
		return;
	distance = sym_nearness(nearest->wanted, wanted, name, length, limit);
	if (distance > limit)
		return;
	for (i = 0; i < nearest->n; i++)
		if (!strcmp(nearest->names[i], name))
			return;
	for (i = nearest->n; i > 0 && nearest->distances[i - 1] > distance; i--)
		if (i < NEAR_MAX) {
			nearest->names[i] = nearest->names[i - 1];
			nearest->distances[i] = nearest->distances[i - 1];
		}
	if (i == NEAR_MAX)
		return;
	nearest->names[i] = name;
	nearest->distances[i] = distance;
	nearest->n += nearest->n < NEAR_MAX;
}

static void offer_unit(struct nearest *nearest, const struct sym_unit *unit)
{
	Dwarf_Die die = unit->skeleton;
	Dwarf_Files *files;
	size_t n;

	if (unit->is_partial || dwarf_getsrcfiles(&die, &files, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);

		if (path)
			offer(nearest, basename(path));
	}
}

struct kymo_error *sym_no_file(struct kymo_debug *debug, const char *file)
{
	struct nearest nearest = { .wanted = basename(file) };
	char text[3 * NAME_MAX_NEAR + 32] = "";
	size_t at = 0;

	for (size_t i = 0; i < debug->units.n; i++)
		offer_unit(&nearest, &debug->units.items[i]);
	for (size_t i = 0; i < nearest.n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "; near are ",
				       nearest.names[i]);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "the debug information of %s has no source file %s%s",
				 kymo_module_path(debug->module), file, text);
}
