/*
 * What the tests of this room share: a directory of their own, programs built in it, and the words of other tools
 * about the same files. gcc, g++ and binutils are taken for granted.
 */
#ifndef KYMO_TEST_SYM_TESTING_H
#define KYMO_TEST_SYM_TESTING_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sym/entries.h"
#include "sym/files.h"
#include "sym/open.h"

static char directory[256];

static inline int make_directory(void **state)
{
	const char *parent = getenv("TMPDIR");

	snprintf(directory, sizeof(directory), "%s/kymo-sym-XXXXXX", parent ? parent : "/tmp");
	/* What tools print is compared as text. */
	setenv("LC_ALL", "C", 1);
	return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command);
}

/* Run a shell command in the directory; it has to succeed. */
static inline __attribute__((format(printf, 1, 2))) void run(const char *format, ...)
{
	char command[8192];
	int n = snprintf(command, sizeof(command), "cd '%s' && ", directory);
	va_list args;

	va_start(args, format);
	vsnprintf(command + n, sizeof(command) - (size_t)n, format, args);
	va_end(args);
	if (system(command))
		fail_msg("failed: %s", command);
}

/* The output of a shell command, line by line. */
static inline __attribute__((format(printf, 1, 2))) FILE *lines_of(const char *format, ...)
{
	char command[8192];
	int n = snprintf(command, sizeof(command), "cd '%s' && ", directory);
	va_list args;
	FILE *lines;

	va_start(args, format);
	vsnprintf(command + n, sizeof(command) - (size_t)n, format, args);
	va_end(args);
	lines = popen(command, "r");
	assert_non_null(lines);
	return lines;
}

static inline void write_file(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static inline const char *in_directory(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static inline void succeeds(struct kymo_error *error)
{
	if (error)
		fail_msg("%s", error->message);
}

/* Fails with `code`, and says `part` among other things. */
static inline void fails(struct kymo_error *error, enum kymo_error_code code, const char *part)
{
	assert_non_null(error);
	if (error->code != code || !strstr(error->message, part))
		fail_msg("code %d, \"%s\" does not contain \"%s\"", (int)error->code, error->message, part);
	kymo_error_destroy(error);
}

static inline struct kymo_module *open_module(const char *path)
{
	struct kymo_module *module = NULL;

	succeeds(kymo_module_open(path, &module));
	return module;
}

/* A file that every Debian has, by what kymo calls it. */
static inline struct kymo_module *open_named(const char *name)
{
	char *path = NULL;
	struct kymo_module *module;

	succeeds(kymo_find_file(name, &path));
	module = open_module(path);
	free(path);
	return module;
}

static inline struct kymo_error *open_bytes(const void *bytes, size_t size, struct kymo_module **ret)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct kymo_error *error;

	assert_true(fd >= 0);
	assert_int_equal(kymo_write_all(fd, bytes, size), 0);
	error = kymo_module_open_fd(fd, "file", ret);
	close(fd);
	return error;
}

static inline uint8_t *read_bytes(const char *path, size_t *size)
{
	char *bytes = NULL;

	assert_int_equal(kymo_read_file(AT_FDCWD, path, 64 << 20, &bytes, size), 0);
	return (uint8_t *)bytes;
}

static inline bool has_entry(struct kymo_module *module, uint64_t vaddr)
{
	const uint64_t *entries;
	size_t n;

	succeeds(kymo_module_entries(module, &entries, &n));
	for (size_t i = 0; i < n; i++)
		if (entries[i] == vaddr)
			return true;
	return false;
}

#endif
