/* What a user may have meant: another library, or a line of source. */
#include "sym/nearest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/files.h"
#include "sym/find.h"

struct nearest {
	const char *name;
	size_t length;
	unsigned int distance; /* twice that */
	char best[64];
};

static void compare(struct nearest *nearest, const char *file, size_t length)
{
	unsigned int d;

	if (!length || length >= sizeof(nearest->best))
		return;
	d = 2 * sym_nearness(nearest->name, nearest->length, file, length, nearest->distance / 2);
	d -= d && length < nearest->length &&
	     !strncmp(nearest->name, file, length); /* a letter too many is likelier than a wrong one */
	if (d >= nearest->distance)
		return;
	nearest->distance = d;
	snprintf(nearest->best, sizeof(nearest->best), "%.*s", (int)length, file);
}

/* Up to its ".so" or version, as users write it. */
static bool compare_library(void *data, const char *file, const char *path)
{
	const char *end = strstr(file, ".so");

	compare(data, file, end ? (size_t)(end - file) : strlen(file));
	return true;
}

/* Programs and libraries, by their whole names; `suffixes`: also up to ".so". */
static void compare_directory(struct nearest *nearest, const char *path, bool suffixes)
{
	kymo_cleanup_closedir DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		compare(nearest, entry->d_name, strlen(entry->d_name));
		if (suffixes && strstr(entry->d_name, ".so"))
			compare_library(nearest, entry->d_name, NULL);
	}
}

/* There are thousands, so that some name is always a little like it: one letter in four may differ. */
static void compare_programs(struct nearest *nearest)
{
	const unsigned int most = 2 * (nearest->length < 8 ? 1 : (unsigned int)nearest->length / 4) + 1;
	const char *at = getenv("PATH");

	if (nearest->distance > most)
		nearest->distance = most;
	while (at && *at) {
		const size_t length = strcspn(at, ":");
		kymo_cleanup_free char *path = strndup(at, length);

		if (path && *path)
			compare_directory(nearest, path, false);
		at += length + (at[length] == ':');
	}
}

static struct nearest begin(const char *name)
{
	struct nearest nearest = { .name = name, .length = strlen(name) };

	nearest.distance = nearest.length < 6 ? 5 : (unsigned int)nearest.length + 1;
	if (nearest.length >= sizeof(nearest.best))
		nearest.length = 0;
	return nearest;
}

/* A file of the directory that the path names. */
static void find_near_path(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');
	struct nearest nearest = begin(slash + 1);
	kymo_cleanup_free char *directory = strndup(path, (size_t)(slash - path) + 1);

	if (nearest.length && directory)
		compare_directory(&nearest, directory, true);
	snprintf(out, size, "%s%s", nearest.best[0] && directory ? directory : "", nearest.best);
}

void kymo_nearest_file(const char *name, const char *program, char *out, size_t size)
{
	struct nearest nearest = begin(name);

	if (strchr(name, '/')) {
		find_near_path(name, out, size);
		return;
	}
	if (nearest.length) {
		compare_library(&nearest, basename(program), program);
		sym_each_library(compare_library, &nearest);
		compare_programs(&nearest);
	}
	snprintf(out, size, "%s", nearest.best);
}

static bool is_source(const char *name)
{
	static const char *const endings[] = { ".c", ".cc", ".cpp", ".cxx", ".h",   ".hpp", ".rs", ".go",
					       ".S", ".s",  ".f90", ".ml",  ".adb", ".d",   ".zig" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && dot > name && i < kymo_countof(endings); i++)
		if (!strcmp(dot, endings[i]))
			return true;
	return false;
}

bool kymo_tell_source_line(const char *file, char *out, size_t size)
{
	const char *colon = strrchr(file, ':'), *source = colon ? colon + 1 : file;
	kymo_cleanup_free char *program = colon ? strndup(file, (size_t)(colon - file)) : NULL;

	if (!is_source(source))
		return false;
	snprintf(out, size, "%s is a file of source; a line of it is written %s:%s:12, with digits alone", source,
		 program ? program : "PROGRAM", source);
	return true;
}
