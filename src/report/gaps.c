#include "report/gaps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *word, *cause;
} causes[] = {
	{ "breakpoint", "another tool's breakpoint was there" },
	{ "dropped", "the file's own bytes were there" },
	{ "changed", "something else had changed the code" },
};

static bool parse_number(const char **text, uint64_t *ret)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*ret = strtoull(*text, &end, 10);
	if (*end != ' ')
		return false;
	*text = end + 1;
	return true;
}

bool kymo_gap_parse(const struct kymo_ctf_env *env, struct trace_gap *ret)
{
	struct trace_gap gap = { .pid = 0 };
	const char *at = env->value;
	size_t which = 0, length;

	if (sscanf(env->key, "gap_%" SCNd32 "_", &gap.pid) != 1)
		return false;
	length = strcspn(at, " ");
	while (which < kymo_countof(causes) &&
	       (strlen(causes[which].word) != length || memcmp(at, causes[which].word, length)))
		which++;
	if (which == kymo_countof(causes) || !at[length])
		return false;
	at += length + 1;
	if (!parse_number(&at, &gap.n) || !parse_number(&at, &gap.begin) || !parse_number(&at, &gap.end))
		return false;
	gap.word = causes[which].word;
	gap.cause = causes[which].cause;
	gap.name = at;
	*ret = gap;
	return true;
}
