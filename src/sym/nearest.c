/* The library that a user may have meant. */
#include <stdio.h>
#include <string.h>

#include "sym/module.h"
#include "sym/sym.h"

struct nearest {
	const char *name;
	size_t length;
	unsigned int distance;		/* twice that */
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
	d -= d && length < nearest->length && !strncmp(nearest->name, file, length);	/* a letter too many is likelier than a wrong one */
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
		compare_name(&nearest, strrchr(program, '/') ? strrchr(program, '/') + 1 : program, program);
		sym_each_library(compare_name, &nearest);
	}
	snprintf(out, size, "%s", nearest.best);
}
