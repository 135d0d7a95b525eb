#include "record/aggregate_fields.h"

#include <string.h>

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
