#include "aggr/marker_pairs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of several is the likelier one. */
static const struct {
	const char *begin, *end;
} pairs[] = {
	{ "start", "done" }, { "start", "end" },  { "start", "stop" },   { "start", "finish" },
	{ "begin", "end" },  { "begin", "done" }, { "begin", "commit" }, { "entry", "return" },
	{ "entry", "exit" }, { "enter", "exit" }, { "enter", "leave" },  { "enter", "return" },
};

/* Whether the name has it as its last word: "x__start", "x-start", "p:start", "start", and not "restart". */
static bool ends_with(const char *name, const char *word)
{
	const size_t n = strlen(name), size = strlen(word);

	return n >= size && !strcmp(name + n - size, word) && (n == size || strchr("_-:", name[n - size - 1]));
}

static char *replace_word(const char *name, const char *word, const char *by)
{
	char *text;

	return asprintf(&text, "%.*s%s", (int)(strlen(name) - strlen(word)), name, by) < 0 ? NULL : text;
}

char *kymo_marker_end(const char *name, size_t i)
{
	for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
		if (ends_with(name, pairs[k].begin) && !i--)
			return replace_word(name, pairs[k].begin, pairs[k].end);
	return NULL;
}

char *kymo_marker_begin(const char *name, size_t i)
{
	for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
		if (ends_with(name, pairs[k].end) && !i--)
			return replace_word(name, pairs[k].end, pairs[k].begin);
	return NULL;
}
