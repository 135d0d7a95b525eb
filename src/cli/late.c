#include "cli/late.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "branch/branch.h"
#include "cli/modules.h"
#include "cli/output.h"
#include "probe/code/missing.h"
#include "probe/spec/spec.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/glob.h"
#include "sym/module.h"
#include "sym/nearest.h"
#include "sym/sym.h"

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether the bytes have the name, as a word of its own. */
static bool mentions(const char *bytes, size_t size, const char *name)
{
	const size_t length = strlen(name);
	const char *at = bytes, *end = bytes + size;

	for (; (at = memmem(at, (size_t)(end - at), name, length)); at++)
		if ((at == bytes || !is_of_word(at[-1])) && (at + length == end || !is_of_word(at[length])))
			return true;
	return false;
}

/* Libraries that it is linked with, what it opens by name; or what a script executes. */
static bool file_mentions(const char *path, const char *name)
{
	kymo_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	void *bytes;
	bool has_it;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return false;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return true;
	has_it = mentions(bytes, (size_t)st.st_size, name);
	munmap(bytes, (size_t)st.st_size);
	return has_it;
}

static bool is_mentioned(const struct kymo_record_options *options, const char *program, const char *name)
{
	static const char *const variables[] = { "LD_PRELOAD", "LD_LIBRARY_PATH" };

	while (!strncmp(name, "./", 2) || !strncmp(name, "../", 3))
		name = strchr(name, '/') + 1;
	for (char *const *word = options->command; *word; word++)
		if (mentions(*word, strlen(*word), name))
			return true;
	for (size_t i = 0; i < kymo_countof(variables); i++)
		if (getenv(variables[i]) && mentions(getenv(variables[i]), strlen(getenv(variables[i])), name))
			return true;
	return kymo_name_matches_file(name, program, NULL) || file_mentions(program, name);
}

/* Libraries of a directory of LD_LIBRARY_PATH. */
static bool is_in_library_path(const char *name)
{
	const char *at = getenv("LD_LIBRARY_PATH");

	while (at && *at) {
		size_t length = strcspn(at, ":");
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%.*s/%s.so", (int)length, at, name) < (int)sizeof(path) &&
		    !access(path, F_OK))
			return true;
		at += length + (at[length] == ':');
	}
	return false;
}

/* Where the file is by its name; NULL: nowhere, by what can be known. */
static char *find_path(const char *name)
{
	char *path = NULL;

	kymo_error_destroy(kymo_find_file(name, &path));
	return path;
}

static bool may_be_met(const struct kymo_record_options *options, const char *program, const char *name)
{
	kymo_cleanup_free char *path = find_path(name);

	return path || is_mentioned(options, program, name) || is_in_library_path(name);
}

/* A process that is there looks for what it means; and so does the command, of what it has from its beginning. */
static bool is_for_a_child(const char *program, const char *name, const char *path)
{
	return !is_in_library_path(name) && strcmp(path, program) != 0 && !file_mentions(program, basename(path));
}

/* A word of the command has a path that ends so: ./split, and not the split of PATH. */
static bool has_path_to(const struct kymo_record_options *options, const char *name)
{
	const size_t size = strlen(name);

	for (char *const *word = options->command; *word; word++)
		for (const char *at = strchr(*word, '/'); at; at = strchr(at + 1, '/'))
			if (!strncmp(at + 1, name, size))
				return true;
	return false;
}

static bool is_script(const char *path)
{
	kymo_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char bytes[2];

	return fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) && !memcmp(bytes, "#!", sizeof(bytes));
}

/* NOT_FOUND where the file is there, for a child, and has no such function. A file that cannot be read now may be
 * another one when it is mapped. */
static struct kymo_error *check_function(const struct kymo_record_options *options, const char *program,
					 const struct kymo_spec *spec)
{
	kymo_cleanup_free char *path = find_path(spec->file);
	kymo_cleanup_free const struct kymo_symbol **symbols = NULL;
	struct kymo_module *module = NULL;
	char meant[600] = "";
	size_t n = 1;

	if (path && strchr(spec->file, '/') && is_script(path))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s is a script, which an interpreter runs: probes are for the interpreter's "
					 "functions, and its libraries",
					 path);
	if (!path || !spec->symbol || !is_for_a_child(program, spec->file, path) ||
	    (!strchr(spec->file, '/') && has_path_to(options, spec->file)))
		return NULL;
	kymo_error_destroy(cli_module(path, &module));
	if (!module)
		return NULL;
	kymo_error_destroy(kymo_module_find(module, spec->symbol, &symbols, &n));
	if (!n)
		kymo_missing_function(module, spec->symbol, meant, sizeof(meant));
	return n ? NULL
		 : kymo_error_create(KYMO_ERROR_NOT_FOUND,
				     "%s has no function %s, and %s was not run%s. Write --late if another file of "
				     "that name has it",
				     path, spec->symbol, options->command[0], meant);
}

static struct kymo_error *no_such_file(const struct kymo_record_options *options, const char *program, const char *name)
{
	char nearest[PATH_MAX] = "";

	kymo_nearest_file(name, program, nearest, sizeof(nearest));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "there is no file called %s, and %s was not run.%s%s%s"
				 " Write --late if the file is created, or loaded from elsewhere, later",
				 name, options->command[0], *nearest ? " Did you mean " : "", nearest,
				 *nearest ? "?" : "");
}

static struct kymo_error *check_spec(const struct kymo_record_options *options, const char *program,
				     const struct kymo_spec *spec)
{
	char sentence[1024];

	if (access(spec->file, X_OK) && kymo_tell_source_line(spec->file, sentence, sizeof(sentence)))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s", sentence);
	if (kymo_is_glob(spec->file))
		return NULL;
	if (!may_be_met(options, program, spec->file))
		return no_such_file(options, program, spec->file);
	return check_function(options, program, spec);
}

/* Of a marker only what has a slash is a file for certain; the part before the colon may be a provider. */
static struct kymo_error *check_marker(const struct kymo_record_options *options, const char *program,
				       const char *marker)
{
	const char *colon = strchr(marker, '|') ? NULL : strrchr(marker, ':');
	kymo_cleanup_free char *name = colon ? strndup(marker, (size_t)(colon - marker)) : NULL;

	if (!name || !strchr(name, '/') || kymo_is_glob(name) || may_be_met(options, program, name))
		return NULL;
	return no_such_file(options, program, name);
}

int cli_check_files(const struct kymo_record_options *options)
{
	kymo_cleanup_free char *program = find_path(options->command[0]);
	struct kymo_error *error = NULL;

	/* The caller that runs it says why it cannot run. */
	for (size_t i = 0; program && i < options->n_specs && !error; i++) {
		const struct kymo_spec *spec = &options->specs[i];

		if (spec->marker)
			error = check_marker(options, program, spec->marker);
		else if (spec->file)
			error = check_spec(options, program, spec);
	}
	for (size_t i = 0; program && i < options->n_branches && !error; i++) {
		const char *name = options->branches[i].file;

		if (name && !kymo_is_glob(name) && !may_be_met(options, program, name))
			error = no_such_file(options, program, name);
	}
	return error ? cli_fail("record", error) : -1;
}
