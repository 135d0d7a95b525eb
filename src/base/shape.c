#include "base/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kymo_shape *kymo_shape_create(enum kymo_shape_kind kind, uint32_t size)
{
	struct kymo_shape *shape = calloc(1, sizeof(*shape));

	if (shape)
		*shape = (struct kymo_shape){ .n_users = 1, .kind = kind, .size = size };
	return shape;
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool kymo_shape_has(const struct kymo_shape *shape, enum kymo_shape_role role, const char *name)
{
	for (uint32_t i = 0; i < shape->n; i++)
		if (shape->members[i].role == role && shape->members[i].name && !strcmp(shape->members[i].name, name))
			return true;
	return false;
}

/* A copy that no other member has. */
static char *make_name(const struct kymo_shape *shape, enum kymo_shape_role role, const char *name, size_t size)
{
	char text[KYMO_SHAPE_NAME_MAX + 16];

	size = size < KYMO_SHAPE_NAME_MAX ? size : KYMO_SHAPE_NAME_MAX;
	memcpy(text, name, size);
	text[size] = '\0';
	for (size_t i = 0; i < size; i++)
		if (!is_of_name(text[i]))
			text[i] = '_';
	for (unsigned int i = 2; kymo_shape_has(shape, role, text); i++)
		snprintf(text + size, sizeof(text) - size, "_%u", i);
	return strdup(text);
}

bool kymo_shape_add(struct kymo_shape *shape, enum kymo_shape_role role, const char *name, size_t name_size,
		    uint32_t bit, uint8_t n_bits, struct kymo_shape *its_shape)
{
	struct kymo_shape_member *grown = shape->members;
	char *copy = role == KYMO_SHAPE_ANONYMOUS ? NULL : make_name(shape, role, name, name_size);

	if (!(shape->n & (shape->n - 1)))
		grown = reallocarray(grown, shape->n ? shape->n * 2 : 1, sizeof(*grown));
	if (grown)
		shape->members = grown;
	if (!grown || (!copy && role != KYMO_SHAPE_ANONYMOUS)) {
		free(copy);
		kymo_shape_release(its_shape);
		return false;
	}
	grown[shape->n++] = (struct kymo_shape_member){ role, copy, bit, n_bits, its_shape };
	return true;
}

struct kymo_shape *kymo_shape_share(struct kymo_shape *shape)
{
	if (shape)
		shape->n_users++;
	return shape;
}

void kymo_shape_release(struct kymo_shape *shape)
{
	if (!shape || --shape->n_users)
		return;
	for (uint32_t i = 0; shape->members && i < shape->n; i++) {
		free(shape->members[i].name);
		kymo_shape_release(shape->members[i].shape);
	}
	free(shape->members);
	kymo_shape_release(shape->of);
	kymo_naming_release(shape->naming);
	free(shape);
}

uint64_t kymo_shape_value(const struct kymo_shape *shape, const uint8_t *bytes, size_t size, uint64_t bit,
			  unsigned int n_bits)
{
	const unsigned int n = n_bits ? n_bits : 8 * shape->size;
	uint64_t value = 0;

	for (unsigned int i = 0; i < n && i < 64; i++) {
		const uint64_t at = bit + i;

		if (at / 8 < size)
			value |= (uint64_t)(bytes[at / 8] >> at % 8 & 1) << i;
	}
	if (shape->is_signed && n && n < 64 && value >> (n - 1) & 1)
		value |= ~0ull << n;
	return value;
}

bool kymo_shape_has_float(const struct kymo_shape *shape, uint32_t size)
{
	if (shape->kind == KYMO_SHAPE_FLOAT)
		return shape->size == size;
	if (shape->kind == KYMO_SHAPE_ARRAY)
		return kymo_shape_has_float(shape->of, size);
	for (uint32_t i = 0; i < shape->n; i++)
		if (kymo_shape_has_float(shape->members[i].shape, size))
			return true;
	return false;
}
