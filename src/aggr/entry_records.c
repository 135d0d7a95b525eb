#include "aggr/entry_records.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE ((size_t)64 << 10)

void kymo_entry_records_deinit(struct kymo_entry_records *records)
{
	free(records->items);
	*records = (struct kymo_entry_records){ .items = NULL };
}

/* Only before it has come around for the first time: then each byte stays where it is. */
static bool grow(struct kymo_entry_records *records)
{
	const size_t size = records->size ? 2 * records->size : FIRST_SIZE;
	uint8_t *grown = realloc(records->items, size);

	if (!grown)
		return false;
	records->items = grown;
	records->size = size;
	return true;
}

/* A record lies in one piece. */
bool kymo_entry_records_put(struct kymo_entry_records *records, const uint8_t *bytes, uint32_t n, uint64_t *at_ret)
{
	while (records->head + n > records->size && records->head <= records->size &&
	       records->size < KYMO_ENTRY_RECORDS_MAX)
		if (!grow(records))
			return false;
	if (records->head % records->size + n > records->size)
		records->head += records->size - records->head % records->size;
	memcpy(records->items + records->head % records->size, bytes, n);
	*at_ret = records->head;
	records->head += n;
	return true;
}

const uint8_t *kymo_entry_records_get(const struct kymo_entry_records *records, uint64_t at, uint32_t n)
{
	if (!records->size || at + n > records->head || records->head - at > records->size)
		return NULL;
	return records->items + at % records->size;
}
