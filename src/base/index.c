#include "base/index.h"

#include <stdlib.h>

#define FIRST_SIZE 64u

void kymo_index_deinit(struct kymo_index *index)
{
	free(index->slots);
	*index = (struct kymo_index){ 0 };
}

bool kymo_index_grow_(const struct kymo_index *index, struct kymo_index *ret)
{
	const size_t size = index->size ? 2 * index->size : FIRST_SIZE;

	*ret = (struct kymo_index){ .slots = calloc(size, sizeof(*ret->slots)), .size = size };
	return ret->slots != NULL;
}
