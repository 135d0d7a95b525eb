#include "aggr/strings.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64u

void kymo_strings_deinit(struct kymo_aggr_strings *strings)
{
	for (size_t i = 0; i < strings->items.n; i++)
		free(strings->items.items[i]);
	kymo_vec_deinit(&strings->items);
	free(strings->index);
	*strings = (struct kymo_aggr_strings){ .size = 0 };
}

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 0x811c9dc5;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x01000193;
	return hash;
}

static uint32_t *find(const struct kymo_aggr_strings *strings, const char *text)
{
	uint32_t at = hash_of(text) & (strings->size - 1);

	while (strings->index[at] && strcmp(strings->items.items[strings->index[at] - 1], text) != 0)
		at = (at + 1) & (strings->size - 1);
	return &strings->index[at];
}

static bool grow(struct kymo_aggr_strings *strings)
{
	const uint32_t size = strings->size ? strings->size * 2 : FIRST_SIZE;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return false;
	free(strings->index);
	strings->index = index;
	strings->size = size;
	for (size_t i = 0; i < strings->items.n; i++)
		*find(strings, strings->items.items[i]) = (uint32_t)i + 1;
	return true;
}

uint32_t kymo_strings_number(struct kymo_aggr_strings *strings, const char *text)
{
	uint32_t *slot;
	char *copy;

	if (2 * (strings->items.n + 1) > strings->size && !grow(strings))
		return 0;
	slot = find(strings, text);
	if (*slot || strings->items.n == KYMO_STRINGS_MAX)
		return *slot;
	copy = strdup(text);
	if (!copy || !kymo_vec_push(&strings->items, copy)) {
		free(copy);
		return 0;
	}
	*slot = (uint32_t)strings->items.n;
	return *slot;
}

const char *kymo_strings_text(const struct kymo_aggr_strings *strings, uint64_t number)
{
	return number && number <= strings->items.n ? strings->items.items[number - 1] : "";
}
