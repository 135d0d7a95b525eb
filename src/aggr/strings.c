#include "aggr/strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void kymo_strings_deinit(struct kymo_aggr_strings *strings)
{
	for (size_t i = 0; i < strings->items.n; i++)
		free(strings->items.items[i]);
	kymo_vec_deinit(&strings->items);
	kymo_index_deinit(&strings->index);
}

uint32_t kymo_strings_number(struct kymo_aggr_strings *strings, const char *text)
{
	const uint64_t hash = kymo_hash_text(KYMO_HASH_FIRST, text);
	const uint32_t known =
		kymo_index_find(&strings->index, hash, i, strcmp(strings->items.items[i - 1], text) == 0);
	char *copy;

	if (known || strings->items.n == KYMO_STRINGS_MAX ||
	    !kymo_index_reserve(&strings->index, strings->items.n, i,
				kymo_hash_text(KYMO_HASH_FIRST, strings->items.items[i - 1])))
		return known;
	copy = strdup(text);
	if (!copy || !kymo_vec_push(&strings->items, copy)) {
		free(copy);
		return 0;
	}
	kymo_index_put(&strings->index, hash, strings->items.n);
	return (uint32_t)strings->items.n;
}

const char *kymo_strings_text(const struct kymo_aggr_strings *strings, uint64_t number)
{
	return number && number <= strings->items.n ? strings->items.items[number - 1] : "";
}
