#include "record/aggregate_fields.h"

#include <string.h>

#include "wire/event.h"

size_t aggregate_field_size(const struct kymo_ctf_field *field, const uint8_t *at)
{
	uint16_t n;

	if (field->type == KYMO_TYPE_STRING)
		return strlen((const char *)at) + 1;
	if (field->type != KYMO_TYPE_BYTES)
		return kymo_type_size(field->type);
	memcpy(&n, at, sizeof(n));
	return sizeof(n) + (size_t)n * kymo_ctf_element_size(field);
}

/* A copy of a size that the compiler knows is a load. */
static uint64_t load(const uint8_t *at, unsigned int size)
{
	uint64_t eight;
	uint32_t four;
	uint16_t two;

	switch (size) {
	case 8:
		memcpy(&eight, at, sizeof(eight));
		return eight;
	case 4:
		memcpy(&four, at, sizeof(four));
		return four;
	case 2:
		memcpy(&two, at, sizeof(two));
		return two;
	default:
		return *at;
	}
}

uint64_t aggregate_field_value(const uint8_t *at, enum kymo_type type)
{
	const unsigned int size = kymo_type_size(type), unused = 64 - 8 * size;
	const uint64_t value = load(at, size);

	return kymo_type_is_signed(type) ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

uint64_t aggregate_whole_stamp(uint64_t low, uint64_t base)
{
	const int unused = 64 - KYMO_EVENT_TIME_BITS;

	return base + (uint64_t)((int64_t)((low - base) << unused) >> unused);
}
