/* What a user may have meant: another library, or a line of source. */
#include "sym/nearest.h"

#include <stdio.h>
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

/* Up to its ".so" or version, as users write it. */
static bool compare_name(void *data, const char *file, const char *path)
{
	struct nearest *nearest = data;
	const char *end = strstr(file, ".so");
	size_t length = end ? (size_t)(end - file) : strlen(file);
	unsigned int d;

	if (!length || length >= sizeof(nearest->best))
		return true;
	d = 2 * sym_nearness(nearest->name, nearest->length, file, length, nearest->distance / 2);
	d -= d && length < nearest->length &&
	     !strncmp(nearest->name, file, length); /* a letter too many is likelier than a wrong one */
	if (d >= nearest->distance)
		return true;
	nearest->distance = d;
	snprintf(nearest->best, sizeof(nearest->best), "%.*s", (int)length, file);
	return true;
}

void kymo_nearest_file(const char *name, const char *program, char *out, size_t size)
{
	struct nearest nearest = { .name = name, .length = strlen(name) };

	nearest.distance = nearest.length < 6 ? 5 : (unsigned int)nearest.length + 1;
	if (nearest.length && nearest.length < sizeof(nearest.best)) {
		compare_name(&nearest, basename(program), program);
		sym_each_library(compare_name, &nearest);
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
