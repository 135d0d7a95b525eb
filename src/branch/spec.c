#include "branch/spec.h"

#include <stdlib.h>
#include <string.h>

static struct kymo_error *refuse(const char *text)
{
	return kymo_error_create(KYMO_ERROR_USAGE,
				 "--branch '%s' names no code: write all, a file (./app, libc), or functions of one "
				 "(./app:parse, 'libc:mem*')",
				 text);
}

/* The last ":" that is none of a "::". */
static const char *file_end(const char *text)
{
	const char *end = NULL;

	for (const char *at = text; *at; at++) {
		if (*at != ':')
			continue;
		if (at[1] == ':') {
			at++;
			continue;
		}
		if (!end)
			end = at;
	}
	return end;
}

struct kymo_error *kymo_branch_spec_parse(const char *text, struct kymo_branch_spec *ret)
{
	const char *end = file_end(text);
	struct kymo_branch_spec spec = { NULL, NULL };

	if (!*text || end == text || (end && !end[1]) || strpbrk(text, " \t\n"))
		return refuse(text);
	if (strcmp(text, "all") != 0) {
		spec.file = end ? strndup(text, (size_t)(end - text)) : strdup(text);
		spec.functions = end ? strdup(end + 1) : NULL;
		if (!spec.file || (end && !spec.functions)) {
			kymo_branch_spec_deinit(&spec);
			return &kymo_error_no_memory;
		}
	}
	*ret = spec;
	return NULL;
}

void kymo_branch_spec_deinit(struct kymo_branch_spec *spec)
{
	free(spec->file);
	free(spec->functions);
	*spec = (struct kymo_branch_spec){ NULL, NULL };
}
