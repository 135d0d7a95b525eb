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
#include "cli/output.h"
#include "sym/files.h"
#include "sym/glob.h"
#include "sym/nearest.h"

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

static bool may_be_met(const struct kymo_record_options *options, const char *program, const char *name)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(name, &path);
	const bool is_there = !error;

	kymo_error_destroy(error);
	return is_there || is_mentioned(options, program, name) || is_in_library_path(name);
}

int cli_check_files(const struct kymo_record_options *options)
{
	kymo_cleanup_free char *program = NULL;
	struct kymo_error *error = kymo_find_file(options->command[0], &program);
	char nearest[64] = "", sentence[1024];

	/* The caller that runs it says why it cannot run. */
	kymo_error_destroy(error);
	for (size_t i = 0; program && i < options->n_specs; i++) {
		const char *name = options->specs[i].file;

		if (name && access(name, X_OK) && kymo_tell_source_line(name, sentence, sizeof(sentence)))
			return cli_fail("record", kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s", sentence));
		if (!name || kymo_is_glob(name) || may_be_met(options, program, name))
			continue;
		if (!strchr(name, '/'))
			kymo_nearest_file(name, program, nearest, sizeof(nearest));
		return cli_fail(
			"record",
			kymo_error_create(KYMO_ERROR_NOT_FOUND,
					  "there is no file called %s, and %s was not run.%s%s%s"
					  " Write --late if the file is created, or loaded from elsewhere, later",
					  name, options->command[0], *nearest ? " Did you mean " : "", nearest,
					  *nearest ? "?" : ""));
	}
	return -1;
}
