#include "cli/debug_files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "sym/debug.h"

struct file {
	const char *path;
	bool is_used;
	struct kymo_error *refusal; /* of the last module whose build it is not; or NULL */
};

/* One command line has one set of them. */
static KYMO_VEC(struct file) files;

struct kymo_error *cli_debug_files_add(const char *path)
{
	for (size_t i = 0; i < files.n; i++)
		if (!strcmp(files.items[i].path, path))
			return NULL;
	if (access(path, R_OK))
		return kymo_error_create(KYMO_ERROR_USAGE, "--debug-file %s: %s", path, strerror(errno));
	return kymo_vec_push(&files, (struct file){ .path = path }) ? NULL : &kymo_error_no_memory;
}

/* Take it if it is of the module's build, and none is taken yet. An error is about a file that has no debug information
 * at all. */
static struct kymo_error *try_file(struct file *file, const struct kymo_module *module, struct kymo_debug **taken)
{
	struct kymo_debug *debug;
	struct kymo_error *error;

	if (*taken && (file->is_used || file->refusal))
		return NULL;
	error = kymo_debug_open(module, file->path, &debug);
	if (!error) {
		file->is_used = true;
		if (*taken)
			kymo_debug_close(debug);
		else
			*taken = debug;
		return NULL;
	}
	if (error->code == KYMO_ERROR_USAGE) {
		kymo_error_destroy(file->refusal);
		file->refusal = error;
		return NULL;
	}
	if (error->code != KYMO_ERROR_NO_MEMORY)
		error->code = KYMO_ERROR_USAGE;
	return error;
}

/* That of the first file that no module has taken, or NULL. The file keeps it: it may be asked for again. */
static struct kymo_error *find_refusal(void)
{
	for (size_t i = 0; i < files.n; i++)
		if (!files.items[i].is_used && files.items[i].refusal)
			return kymo_error_create(files.items[i].refusal->code, "%s", files.items[i].refusal->message);
	return NULL;
}

struct kymo_error *cli_debug_open(const struct kymo_module *module, struct kymo_debug **ret)
{
	struct kymo_debug *debug = NULL;
	struct kymo_error *error = NULL, *refusal;

	for (size_t i = 0; i < files.n && !error; i++)
		error = try_file(&files.items[i], module, &debug);
	if (!debug && !error)
		error = kymo_debug_open(module, NULL, &debug);
	if (!error) {
		*ret = debug;
		return NULL;
	}
	kymo_debug_close(debug);
	refusal = error->code == KYMO_ERROR_NOT_FOUND ? find_refusal() : NULL;
	if (!refusal)
		return error;
	kymo_error_destroy(error);
	return refusal;
}

struct kymo_error *cli_debug_files_check(void)
{
	struct kymo_error *refusal = find_refusal();

	for (size_t i = 0; i < files.n && !refusal; i++)
		if (!files.items[i].is_used)
			refusal = kymo_error_create(
				KYMO_ERROR_USAGE,
				"--debug-file %s: nothing after it needs debug information; leave the "
				"option out, or write it before the probe",
				files.items[i].path);
	return refusal;
}

void cli_debug_files_deinit(void)
{
	for (size_t i = 0; i < files.n; i++)
		kymo_error_destroy(files.items[i].refusal);
	kymo_vec_deinit(&files);
}
