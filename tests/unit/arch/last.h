/* The last record that pads have made. Include after cmocka.h. */
#ifndef KYMO_TESTS_ARCH_LAST_H
#define KYMO_TESTS_ARCH_LAST_H

#include <string.h>

#include "pads.h"

struct last {
	unsigned int n; /* records */
	uint32_t id;
	size_t size;
	uint8_t bytes[2 * 8192];
};

static inline void keep(void *data, const struct record *record, const uint8_t *bytes)
{
	struct last *last = data;

	last->n++;
	last->id = record->id;
	last->size = record->size;
	assert_true(record->size <= sizeof(last->bytes));
	memcpy(last->bytes, bytes, record->size);
}

#endif
