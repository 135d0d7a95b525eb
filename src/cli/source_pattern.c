#include "cli/source_pattern.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/debug.h"

#define SHOWN_MAX 8 /* lines, in a sentence */

size_t cli_source_pattern_size(const char *text, size_t *at_ret)
{
	const char *colon = strchr(text, ':'), *slash = colon ? strstr(colon + 1, ":/") : NULL, *end;

	if (!slash || slash == colon + 1 || strcspn(text, " \t") < (size_t)(slash - text))
		return 0;
	for (end = strchr(slash + 2, '/'); end; end = strchr(end + 1, '/'))
		if (!end[1] || strchr(" \t", end[1]))
			break;
	if (!end || end == slash + 2)
		return 0;
	*at_ret = (size_t)(slash - text) + 1;
	return (size_t)(end - text) + 1;
}

/* The lines that match: the last one with code, how many have some, and the first without. */
struct matches {
	unsigned int with_code, without_code;
	size_t n;
	char shown[16 * SHOWN_MAX];
};

static struct kymo_error *note_match(struct kymo_debug *debug, const char *source, unsigned int number,
				     struct matches *matches)
{
	const struct kymo_source_line *lines;
	const size_t used = strlen(matches->shown);
	size_t n;
	struct kymo_error *error = kymo_debug_lines(debug, source, number, &lines, &n);

	if (error)
		return error;
	if (!n || lines[0].line != number) {
		matches->without_code = matches->without_code ? matches->without_code : number;
		return NULL;
	}
	matches->with_code = number;
	if (matches->n++ < SHOWN_MAX)
		snprintf(matches->shown + used, sizeof(matches->shown) - used, "%s%u", used ? ", " : "", number);
	return NULL;
}

static struct kymo_error *match_lines(struct kymo_debug *debug, const char *source, const char *path,
				      const regex_t *regex, struct matches *matches)
{
	kymo_cleanup_free char *line = NULL;
	FILE *file = fopen(path, "re");
	struct kymo_error *error = NULL;
	unsigned int number = 0;
	size_t size = 0;

	if (!file)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "the source %s cannot be read (%s); write the line's number: %s:120", path,
					 strerror(errno), source);
	while (!error && getline(&line, &size, file) >= 0) {
		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (!regexec(regex, line, 0, NULL, 0))
			error = note_match(debug, source, number, matches);
	}
	fclose(file);
	return error;
}

static struct kymo_error *choose(const char *source, const char *pattern, const struct matches *matches,
				 unsigned int *ret)
{
	if (matches->n > 1)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "/%s/ is in %zu lines of %s that have code (%s%s); write more of one, or its "
					 "number",
					 pattern, matches->n, source, matches->shown,
					 matches->n > SHOWN_MAX ? ", …" : "");
	if (!matches->n && !matches->without_code)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no line of %s matches /%s/", source, pattern);
	*ret = matches->n ? matches->with_code : matches->without_code;
	return NULL;
}

/* Compilers write one path in several ways. */
static bool are_same_files(const char *a, const char *b)
{
	kymo_cleanup_free char *x = realpath(a, NULL), *y = realpath(b, NULL);

	return x && y && !strcmp(x, y);
}

/* The one source of that name, to be freed. */
static struct kymo_error *find_path(struct kymo_debug *debug, const char *source, char **ret)
{
	const char *const *paths;
	struct kymo_error *error;
	size_t n;

	error = kymo_debug_sources(debug, source, &paths, &n);
	if (error || !n)
		return error ? error : kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is no code of %s", source);
	for (size_t i = 1; i < n; i++)
		if (!are_same_files(paths[0], paths[i]))
			return kymo_error_create(KYMO_ERROR_USAGE,
						 "%s may be %s or %s; write more of the path before the text", source,
						 paths[0], paths[i]);
	*ret = strdup(paths[0]);
	return *ret ? NULL : &kymo_error_no_memory;
}

struct kymo_error *cli_source_pattern_find(struct kymo_debug *debug, const char *source, const char *pattern,
					   unsigned int *ret)
{
	struct matches matches = { .n = 0 };
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error;
	char reason[200];
	regex_t regex;
	int err;

	error = find_path(debug, source, &path);
	if (error)
		return error;
	err = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, &regex, reason, sizeof(reason));
		return kymo_error_create(KYMO_ERROR_USAGE, "/%s/ is no regular expression: %s", pattern, reason);
	}
	error = match_lines(debug, source, path, &regex, &matches);
	regfree(&regex);
	return error ? error : choose(source, pattern, &matches, ret);
}
