/* Opening and closing. */
#include "sym/debug.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/debug_memory.h"
#include "sym/debug_unit.h"
#include "sym/debuglink.h"
#include "sym/module.h"
#include "sym/module_state.h"

/* ---- build-ids ------------------------------------------------------------------------------- */

#define ID_TEXT (2 * KYMO_BUILD_ID_MAX + 1)

static void print_id(const uint8_t *id, size_t size, char out[ID_TEXT])
{
	*out = '\0';
	for (size_t i = 0; i < size && i < KYMO_BUILD_ID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
}

/* Both, of files that are of different builds. False: one has none, or they are equal. */
static bool differ(const struct kymo_module *module, const struct sym_image *image, char ours[ID_TEXT],
		   char theirs[ID_TEXT])
{
	uint8_t id[KYMO_BUILD_ID_MAX];
	const size_t size = sym_debug_build_id(image, id);

	if (!size || !module->build_id_size || (size == module->build_id_size && !memcmp(id, module->build_id, size)))
		return false;
	print_id(module->build_id, module->build_id_size, ours);
	print_id(id, size, theirs);
	return true;
}

/* A file that the user names is of this build, as far as both say. */
static struct kymo_error *check_build(const struct kymo_module *module, const struct sym_image *image)
{
	char ours[ID_TEXT], theirs[ID_TEXT];

	if (!differ(module, image, ours, theirs))
		return NULL;
	return kymo_error_create(KYMO_ERROR_USAGE,
				 "%s is of another build than %s: its build-id is %s, the program's is %s; give the "
				 "debug information of that build",
				 image->path, kymo_module_path(module), theirs, ours);
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct kymo_error *read_image(const char *path, struct sym_image *ret)
{
	kymo_cleanup_close int fd = sym_image_open(path);

	if (fd < 0 && errno == EINVAL)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is not a regular file", path);
	if (fd < 0)
		return kymo_error_errno(errno, "%s", path);
	return sym_image_init(ret, fd, path, SYM_DWARF);
}

/* Whether libdw finds something in the image; then in `dwarf_ret`. */
static bool begin_dwarf(const struct sym_image *image, Dwarf **dwarf_ret)
{
	Dwarf *dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	Dwarf_CU *unit = NULL;

	if (dwarf && (dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL) || !unit)) {
		dwarf_end(dwarf);
		return false;
	}
	*dwarf_ret = dwarf;
	return dwarf;
}

static bool try_alt(struct kymo_debug *debug, const char *path, const void *id, size_t id_size)
{
	uint8_t found[KYMO_BUILD_ID_MAX];
	struct kymo_error *error = read_image(path, &debug->alt_image);
	size_t size;

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	size = sym_debug_build_id(&debug->alt_image, found);
	if (size == id_size && !memcmp(found, id, size) && begin_dwarf(&debug->alt_image, &debug->alt)) {
		dwarf_setalt(debug->dwarf, debug->alt);
		return true;
	}
	sym_image_deinit(&debug->alt_image);
	return false;
}

/* What several files of debug information share (dwz): .gnu_debugaltlink names it, from the directory of the file. */
static void find_alt(struct kymo_debug *debug)
{
	kymo_cleanup_free char *real = NULL, *path = NULL;
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(debug->dwarf, &name, &id);
	char text[ID_TEXT];

	if (size < 2 || size > KYMO_BUILD_ID_MAX)
		return;
	/* Another user's file may name any. */
	if (debug->image.is_protected)
		real = realpath(debug->image.path, NULL);
	if (real && asprintf(&path, "%s%s%s", *name == '/' ? "" : dirname(real), *name == '/' ? "" : "/", name) < 0)
		path = NULL;
	if (path && try_alt(debug, path, id, (size_t)size))
		return;
	free(path);
	print_id(id, (size_t)size, text);
	if (asprintf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", text, text + 2) < 0)
		path = NULL;
	if (path)
		try_alt(debug, path, id, (size_t)size);
}

/* Debian's package of glibc has debug symbols of its own. Those of programs have the program's name in most cases. */
static bool is_of_glibc(const char *name)
{
	static const char *const names[] = { "libc.so.",       "libm.so.",  "ld-linux-",
					     "libpthread.so.", "libdl.so.", "librt.so." };

	for (size_t i = 0; i < kymo_countof(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static struct kymo_error *none(const struct kymo_module *module)
{
	const char *path = kymo_module_path(module), *name = strrchr(path, '/');
	char package[NAME_MAX + sizeof("PACKAGE-dbgsym of the PACKAGE that 'dpkg -S ' names,")];

	name = name ? name + 1 : path;
	if (strstr(name, ".so"))
		snprintf(package, sizeof(package), "PACKAGE-dbgsym of the PACKAGE that 'dpkg -S %s' names,", name);
	else
		snprintf(package, sizeof(package), "%s-dbgsym", name);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "%s has no debug information; install the debug symbols of its package "
				 "(%s on Debian), build it with -g, or name the file with --debug-file",
				 path, is_of_glibc(name) ? "libc6-dbg" : package);
}

/* The file that .gnu_debuglink names is there. */
static struct kymo_error *of_another_build(const struct kymo_module *module, const char *misfit)
{
	char ours[ID_TEXT], theirs[ID_TEXT];
	struct sym_image image;
	struct kymo_error *error = read_image(misfit, &image);
	bool is_told;

	if (error) {
		kymo_error_destroy(error);
		return none(module);
	}
	is_told = differ(module, &image, ours, theirs);
	sym_image_deinit(&image);
	if (!is_told)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s has no debug information but %s, which is not the file that it was linked "
					 "to: the checksum is another; name the right one with --debug-file",
					 kymo_module_path(module), misfit);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "%s has no debug information but %s, which is of another build: its build-id is %s, "
				 "the program's is %s; name the right one with --debug-file",
				 kymo_module_path(module), misfit, theirs, ours);
}

static struct kymo_error *open_separate(struct kymo_debug *debug)
{
	const struct kymo_module *module = debug->module;
	kymo_cleanup_free char *separate = NULL, *misfit = NULL;
	struct kymo_error *error = sym_debug_find(module, &separate, &misfit);

	if (error)
		return error;
	if (!separate)
		return misfit ? of_another_build(module, misfit) : none(module);
	sym_image_deinit(&debug->image);
	error = read_image(separate, &debug->image);
	if (!error && !begin_dwarf(&debug->image, &debug->dwarf))
		error = none(module);
	return error;
}

/* Take the first that has debug information: the file that the user names; else the program's own, then a separate one.
 */
static struct kymo_error *open_named(struct kymo_debug *debug, const char *debug_file)
{
	struct kymo_error *error = read_image(debug_file ? debug_file : debug->module->image.path, &debug->image);

	if (!error && debug_file)
		error = check_build(debug->module, &debug->image);
	if (error || begin_dwarf(&debug->image, &debug->dwarf))
		return error;
	return debug_file ? kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no debug information", debug_file)
			  : open_separate(debug);
}

static struct kymo_error *open_mapped(struct kymo_debug *debug, int fd)
{
	struct kymo_error *error;

	if (fd < 0)
		return open_separate(debug);
	error = sym_image_init(&debug->image, fd, debug->module->image.path, SYM_DWARF);
	return error || begin_dwarf(&debug->image, &debug->dwarf) ? error : open_separate(debug);
}

/* `error` is from opening the files. */
static struct kymo_error *finish(struct kymo_debug *debug, struct kymo_error *error, struct kymo_debug **ret)
{
	if (!error) {
		find_alt(debug);
		sym_units_read(debug);
		error = sym_debug_end(debug);
	}
	if (error) {
		kymo_debug_close(debug);
		return error;
	}
	*ret = debug;
	return NULL;
}

struct kymo_error *kymo_debug_open(const struct kymo_module *module, const char *debug_file, struct kymo_debug **ret)
{
	struct kymo_debug *debug = calloc(1, sizeof(*debug));

	if (!debug)
		return &kymo_error_no_memory;
	debug->module = module;
	return finish(debug, open_named(debug, debug_file), ret);
}

struct kymo_error *kymo_debug_open_mapped(const struct kymo_module *module, int fd, struct kymo_debug **ret)
{
	struct kymo_debug *debug = calloc(1, sizeof(*debug));

	if (!debug)
		return &kymo_error_no_memory;
	debug->module = module;
	debug->ignores_splits = !kymo_module_is_protected(module);
	return finish(debug, open_mapped(debug, fd), ret);
}

void kymo_debug_close(struct kymo_debug *debug)
{
	if (!debug)
		return;
	if (debug->frames)
		dwarf_cfi_end(debug->frames); /* that of .debug_frame belongs to `dwarf` */
	dwarf_end(debug->dwarf);
	dwarf_end(debug->alt);
	sym_image_deinit(&debug->image);
	sym_image_deinit(&debug->alt_image);
	kymo_vec_deinit(&debug->spans);
	kymo_vec_deinit(&debug->spanned);
	kymo_vec_deinit(&debug->units);
	kymo_vec_deinit(&debug->ranges);
	kymo_vec_deinit(&debug->types);
	kymo_vec_deinit(&debug->names);
	kymo_vec_deinit(&debug->enumerations);
	free(debug->type_buckets);
	free(debug->name_buckets);
	sym_debug_free(debug);
	free(debug);
}
