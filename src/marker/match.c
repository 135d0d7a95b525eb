#include "marker/match.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/files.h"

/* Past the set "[...]" at `at`, or past its "[" where it has no end. A "]" that comes first is one of the set, and so
 * is all within "[: :]". */
static const char *skip_set(const char *at)
{
	const char *begin = at + 1, *end;

	at = begin;
	if (*at == '!' || *at == '^')
		at++;
	if (*at == ']')
		at++;
	while (*at && *at != ']') {
		end = at[0] == '[' && at[1] == ':' ? strstr(at + 2, ":]") : NULL;
		at = end ? end + 2 : at + 1;
	}
	return *at ? at + 1 : begin;
}

/* The colon that parts "GLOB:GLOB": the last one that is in no set. */
static const char *find_colon(const char *glob)
{
	const char *found = NULL;

	while (*glob) {
		if (*glob == '[') {
			glob = skip_set(glob);
			continue;
		}
		if (*glob == '\\' && glob[1])
			glob++;
		else if (*glob == ':')
			found = glob;
		glob++;
	}
	return found;
}

/* The end of the first of "GLOB|GLOB". */
static const char *find_glob_end(const char *glob)
{
	while (*glob && *glob != '|') {
		if (*glob == '[') {
			glob = skip_set(glob);
			continue;
		}
		glob += 1 + (*glob == '\\' && glob[1]);
	}
	return glob;
}

static bool matches_one(const char *glob, const char *module_path, const char *soname, const char *provider,
			const char *name)
{
	const char *colon = find_colon(glob);
	kymo_cleanup_free char *first = NULL;

	if (!colon)
		return !fnmatch(glob, name, 0);
	if (fnmatch(colon + 1, name, 0))
		return false;
	first = strndup(glob, (size_t)(colon - glob));
	return first && (!fnmatch(first, provider, 0) || kymo_name_matches_file(first, module_path, soname));
}

bool kymo_marker_matches(const char *glob, const char *module_path, const char *soname, const char *provider,
			 const char *name)
{
	for (;;) {
		const char *end = find_glob_end(glob);
		kymo_cleanup_free char *one = strndup(glob, (size_t)(end - glob));

		if (one && matches_one(one, module_path, soname, provider, name))
			return true;
		if (!*end)
			return false;
		glob = end + 1;
	}
}
