#include "expr/type.h"

#include <stdio.h>
#include <string.h>

#define DIMENSIONS_MAX 16

const struct kymo_ctype kymo_expr_later = { .kind = KYMO_CTYPE_OTHER, .name = "(not known yet)" };
const struct kymo_ctype expr_void = { .kind = KYMO_CTYPE_VOID, .name = "void" };
const struct kymo_ctype expr_boolean = { .kind = KYMO_CTYPE_BOOLEAN, .name = "bool", .size = 1 };

const struct kymo_ctype expr_float = { .kind = KYMO_CTYPE_FLOAT, .name = "float", .size = 4 };
const struct kymo_ctype expr_double = { .kind = KYMO_CTYPE_FLOAT, .name = "double", .size = 8 };

/* The integers without debug information, by the logarithm of their size: unsigned ones, then signed ones. */
static const struct kymo_ctype integers[2][4] = {
	{
		{ .kind = KYMO_CTYPE_INTEGER, .name = "unsigned char", .size = 1 },
		{ .kind = KYMO_CTYPE_INTEGER, .name = "unsigned short", .size = 2 },
		{ .kind = KYMO_CTYPE_INTEGER, .name = "unsigned int", .size = 4 },
		{ .kind = KYMO_CTYPE_INTEGER, .name = "unsigned long", .size = 8 },
	},
	{
		{ .kind = KYMO_CTYPE_INTEGER, .name = "signed char", .size = 1, .is_signed = true },
		{ .kind = KYMO_CTYPE_INTEGER, .name = "short", .size = 2, .is_signed = true },
		{ .kind = KYMO_CTYPE_INTEGER, .name = "int", .size = 4, .is_signed = true },
		{ .kind = KYMO_CTYPE_INTEGER, .name = "long", .size = 8, .is_signed = true },
	},
};

const struct kymo_ctype expr_byte = { .kind = KYMO_CTYPE_INTEGER, .name = "unsigned char", .size = 1 };

static bool has_integer_size(const struct kymo_ctype *ctype)
{
	return ctype->size == 1 || ctype->size == 2 || ctype->size == 4 || ctype->size == 8;
}

static bool is_integer(const struct kymo_ctype *ctype)
{
	return (ctype->kind == KYMO_CTYPE_INTEGER || ctype->kind == KYMO_CTYPE_BOOLEAN ||
		ctype->kind == KYMO_CTYPE_CHARACTER || ctype->kind == KYMO_CTYPE_ENUM) &&
	       has_integer_size(ctype);
}

struct kymo_expr_type kymo_expr_type_of(const struct kymo_ctype *ctype)
{
	if (!ctype)
		ctype = &expr_void;
	if (ctype->kind == KYMO_CTYPE_FLOAT && ctype->size == 4)
		return (struct kymo_expr_type){ .size = 4, .of = ctype };
	if (!is_integer(ctype))
		return (struct kymo_expr_type){ .size = 8, .of = ctype };
	return (struct kymo_expr_type){ .size = (uint8_t)ctype->size, .is_signed = ctype->is_signed, .of = ctype };
}

enum kymo_expr_class kymo_expr_class_of(struct kymo_expr_type type)
{
	if (type.is_string)
		return KYMO_EXPR_STRING;
	if (type.n)
		return KYMO_EXPR_ARRAY;
	if (type.pointers)
		return KYMO_EXPR_POINTER;
	if (!type.of || is_integer(type.of))
		return KYMO_EXPR_INTEGER;
	switch (type.of->kind) {
	case KYMO_CTYPE_VOID:
		return KYMO_EXPR_VOID;
	case KYMO_CTYPE_FLOAT:
		return KYMO_EXPR_FLOAT;
	case KYMO_CTYPE_POINTER:
		return KYMO_EXPR_POINTER;
	case KYMO_CTYPE_STRUCT:
	case KYMO_CTYPE_UNION:
		return KYMO_EXPR_STRUCT;
	case KYMO_CTYPE_ARRAY:
		return KYMO_EXPR_ARRAY;
	case KYMO_CTYPE_FUNCTION:
		return KYMO_EXPR_FUNCTION;
	default:
		return KYMO_EXPR_OTHER;
	}
}

enum kymo_type kymo_expr_record_type(struct kymo_expr_type type)
{
	static const enum kymo_type types[9][2] = {
		[1] = { KYMO_TYPE_U8, KYMO_TYPE_S8 },
		[2] = { KYMO_TYPE_U16, KYMO_TYPE_S16 },
		[4] = { KYMO_TYPE_U32, KYMO_TYPE_S32 },
		[8] = { KYMO_TYPE_U64, KYMO_TYPE_S64 },
	};

	switch (kymo_expr_class_of(type)) {
	case KYMO_EXPR_INTEGER:
		return types[type.size][type.is_signed];
	case KYMO_EXPR_POINTER:
		return KYMO_TYPE_X64;
	case KYMO_EXPR_FLOAT:
		return type.size == 4 ? KYMO_TYPE_F32 : KYMO_TYPE_F64;
	case KYMO_EXPR_STRING:
		return KYMO_TYPE_STRING;
	default:
		return KYMO_TYPE_BYTES;
	}
}

uint64_t kymo_expr_type_bytes(struct kymo_expr_type type)
{
	const struct kymo_ctype *of = type.of;
	uint64_t size;

	if (type.n) {
		const uint32_t n = type.n;

		type.n = 0;
		size = kymo_expr_type_bytes(type);
		return size > UINT32_MAX ? 0 : n * size;
	}
	if (type.pointers || !of)
		return type.size;
	if (of->kind == KYMO_CTYPE_POINTER)
		return 8;
	if (of->size || of->kind != KYMO_CTYPE_ARRAY || !of->of || of->of->size > UINT32_MAX || of->n > UINT32_MAX)
		return of->size;
	return of->n * of->of->size;
}

/* The type of the source for an integer that has none. */
static const struct kymo_ctype *plain(struct kymo_expr_type type)
{
	const unsigned int log = type.size == 8 ? 3 : type.size / 2u;

	return &integers[type.is_signed][log];
}

const char *kymo_expr_type_name(struct kymo_expr_type type, char out[KYMO_EXPR_TYPE_NAME_MAX])
{
	const struct kymo_ctype *of = type.of ? type.of : plain(type);
	const char *name = of->name ? of->name : "(unnamed)";
	size_t n;

	if (type.is_string)
		name = "text";
	snprintf(out, KYMO_EXPR_TYPE_NAME_MAX, "%s", name);
	n = strlen(out);
	for (unsigned int i = 0; i < type.pointers && n + 2 < KYMO_EXPR_TYPE_NAME_MAX; i++)
		n += (size_t)snprintf(out + n, KYMO_EXPR_TYPE_NAME_MAX - n,
				      !i && (!n || out[n - 1] != '*') ? " *" : "*");
	if (type.n && !type.is_string && n < KYMO_EXPR_TYPE_NAME_MAX)
		snprintf(out + n, KYMO_EXPR_TYPE_NAME_MAX - n, "[%u]", type.n);
	return out;
}

struct kymo_expr_type expr_type_target(struct kymo_expr_type type)
{
	if (type.n) {
		type.n = 0;
		type.ends_at_null = false;
		return type.pointers ? type : kymo_expr_type_of(type.of);
	}
	if (type.pointers > 1) {
		type.pointers--;
		return type;
	}
	if (type.pointers)
		return kymo_expr_type_of(type.of);
	return kymo_expr_type_of(type.of->of);
}

bool kymo_expr_element_type(struct kymo_expr_type type, struct kymo_expr_type *ret)
{
	unsigned int depth = 0;

	while (kymo_expr_class_of(type) == KYMO_EXPR_ARRAY && depth < DIMENSIONS_MAX) {
		type = expr_type_target(type);
		depth++;
	}
	*ret = type;
	return depth && depth < DIMENSIONS_MAX;
}

struct kymo_expr_type expr_type_pointer(struct kymo_expr_type type)
{
	return (struct kymo_expr_type){
		.size = 8,
		.pointers = (uint8_t)(type.pointers + 1),
		.of = type.of ? type.of : plain(type),
	};
}

struct kymo_expr_type expr_type_piece(struct kymo_expr_type type, uint32_t n)
{
	return (struct kymo_expr_type){
		.size = 8,
		.pointers = type.pointers,
		.n = n,
		.of = type.of ? type.of : plain(type),
	};
}

bool expr_type_is_reference(struct kymo_expr_type type)
{
	const char *name = !type.pointers && !type.n && !type.is_string && type.of ? type.of->name : NULL;

	return name && type.of->kind == KYMO_CTYPE_POINTER && *name && name[strlen(name) - 1] == '&';
}

bool expr_type_is_real(struct kymo_expr_type type)
{
	return kymo_expr_class_of(type) == KYMO_EXPR_FLOAT && (type.of->size == 4 || type.of->size == 8);
}
