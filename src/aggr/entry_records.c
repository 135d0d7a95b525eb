#include "aggr/entry_records.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MIN ((size_t)64 << 10)

void kymo_entry_records_deinit(struct kymo_entry_records *records)
{
	free(records->items);
	*records = (struct kymo_entry_records){ .items = NULL };
}

bool kymo_entry_records_have_room(const struct kymo_entry_records *records, uint32_t n)
{
	return n <= records->size - records->n;
}

bool kymo_entry_records_grow(struct kymo_entry_records *records, uint32_t n)
{
	const size_t wanted = 2 * records->n + n, size = wanted > SIZE_MIN ? wanted : SIZE_MIN;
	uint8_t *grown = realloc(records->items, size);

	if (!grown)
		return false;
	records->items = grown;
	records->size = size;
	return true;
}

uint64_t kymo_entry_records_put(struct kymo_entry_records *records, const uint8_t *bytes, uint32_t n)
{
	const uint64_t at = records->n;

	memcpy(records->items + at, bytes, n);
	records->n += n;
	return at;
}

const uint8_t *kymo_entry_records_get(const struct kymo_entry_records *records, uint64_t at)
{
	return records->items + at;
}
