#include "ctf/write_type.h"

#include <inttypes.h>

#include "ctf/tsdl.h"

void kymo_tsdl_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\%03o", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Whether `n_bits` hold the value; 0 is enough for all. */
static bool fits(int64_t value, unsigned int n_bits, bool is_signed)
{
	if (!n_bits || n_bits == 64)
		return true;
	if (!is_signed)
		return !((uint64_t)value >> n_bits);
	return value >= -(INT64_C(1) << (n_bits - 1)) && value < INT64_C(1) << (n_bits - 1);
}

/* Whether a bit-field of that size can have a value with a name. */
static bool has_names(const struct kymo_naming *naming, unsigned int n_bits, bool is_signed)
{
	for (size_t i = 0; naming && i < naming->n; i++)
		if (fits(naming->names[i].value, n_bits, is_signed))
			return true;
	return false;
}

/* " { "A" = 0, "B" = 1 }": those that fit. */
static void write_names(FILE *out, const struct kymo_naming *naming, unsigned int n_bits, bool is_signed)
{
	const char *separator = " { ";

	for (size_t i = 0; i < naming->n; i++) {
		if (!fits(naming->names[i].value, n_bits, is_signed))
			continue;
		fputs(separator, out);
		kymo_tsdl_string(out, naming->names[i].name);
		fprintf(out, is_signed ? " = %" PRId64 : " = %" PRIu64, naming->names[i].value);
		separator = ", ";
	}
	fputs(" }", out);
}

void kymo_tsdl_type(FILE *out, enum kymo_type type, const struct kymo_naming *naming)
{
	const bool is_byte = type == KYMO_TYPE_S8 || type == KYMO_TYPE_U8;

	if (naming && naming->is_character && is_byte) {
		fputs(type == KYMO_TYPE_S8 ? KYMO_TSDL_S8_CHARACTER : KYMO_TSDL_U8_CHARACTER, out);
		return;
	}
	if (!naming || !naming->n || !kymo_type_is_integer(type)) {
		fputs(kymo_type_name(type), out);
		return;
	}
	fprintf(out, "enum : %s", kymo_type_name(type));
	write_names(out, naming, 0, kymo_type_is_signed(type));
}

/* Of an INTEGER or FLOAT. */
static enum kymo_type type_of(const struct kymo_shape *shape)
{
	const int log = __builtin_ctz(shape->size);

	if (shape->kind == KYMO_SHAPE_FLOAT)
		return shape->size == 4 ? KYMO_TYPE_F32 : KYMO_TYPE_F64;
	return (enum kymo_type)(log + (shape->is_hex ? KYMO_TYPE_X8 : shape->is_signed ? KYMO_TYPE_S8 : KYMO_TYPE_U8));
}

static void write_bit_field(FILE *out, const struct kymo_shape *shape, unsigned int n_bits)
{
	const bool is_named = has_names(shape->naming, n_bits, shape->is_signed);

	fprintf(out, "%sinteger { size = %u; align = 1; signed = %s; byte_order = le; base = 10; }",
		is_named ? "enum : " : "", n_bits, shape->is_signed ? "true" : "false");
	if (is_named)
		write_names(out, shape->naming, n_bits, shape->is_signed);
}

/* ---- structures ------------------------------------------------------------------------------ */

/* What an array has, if all of its dimensions are left out. */
static const struct kymo_shape *innermost(const struct kymo_shape *shape)
{
	while (shape->kind == KYMO_SHAPE_ARRAY)
		shape = shape->of;
	return shape;
}

static void write_dimensions(FILE *out, const struct kymo_shape *shape)
{
	for (; shape->kind == KYMO_SHAPE_ARRAY; shape = shape->of)
		fprintf(out, "[%" PRIu32 "]", shape->n);
	if (shape->kind == KYMO_SHAPE_BYTES && !shape->is_cut)
		fprintf(out, "[%" PRIu32 "]", shape->size);
}

static void write_part(FILE *out, const struct kymo_shape *shape, unsigned int n_bits)
{
	shape = innermost(shape);
	switch (shape->kind) {
	case KYMO_SHAPE_STRUCT:
	case KYMO_SHAPE_UNION:
		kymo_tsdl_shape(out, shape);
		break;
	case KYMO_SHAPE_BYTES:
		if (shape->is_cut)
			kymo_tsdl_shape(out, shape);
		else
			fputs("x8", out);
		break;
	default:
		if (n_bits)
			write_bit_field(out, shape, n_bits);
		else
			kymo_tsdl_type(out, type_of(shape), shape->naming);
	}
}

/* `number`: of members without a name. */
static void write_member(FILE *out, const struct kymo_shape_member *member, uint32_t number, bool is_overlaid)
{
	write_part(out, member->shape, member->n_bits);
	if (member->role == KYMO_SHAPE_ANONYMOUS)
		fprintf(out, " " KYMO_TSDL_ANONYMOUS "%" PRIu32, number);
	else
		fprintf(out, " %s%s", member->role == KYMO_SHAPE_BASE ? KYMO_TSDL_BASE : "_", member->name);
	fputs(is_overlaid ? "[0]" : "", out);
	write_dimensions(out, member->shape);
	fputs("; ", out);
}

static void write_padding_bits(FILE *out, uint64_t n, unsigned int *number)
{
	if (n)
		fprintf(out,
			"integer { size = %" PRIu64
			"; align = 1; signed = false; byte_order = le; base = 10; } " KYMO_TSDL_PADDING "%u; ",
			n, ++*number);
}

/* From one bit to another. */
static void write_padding(FILE *out, uint64_t from, uint64_t to, unsigned int *number)
{
	const uint64_t to_byte = (8 - from % 8) % 8;

	if (from + to_byte > to) {
		write_padding_bits(out, to - from, number);
		return;
	}
	write_padding_bits(out, to_byte, number);
	from += to_byte;
	if (to - from >= 8)
		fprintf(out, "u8 " KYMO_TSDL_PADDING "%u[%" PRIu64 "]; ", ++*number, (to - from) / 8);
	write_padding_bits(out, (to - from) % 8, number);
}

static void write_members(FILE *out, const struct kymo_shape *shape)
{
	unsigned int n_paddings = 0;
	uint64_t at = 0;

	for (uint32_t i = 0; i < shape->n; i++) {
		const struct kymo_shape_member *member = &shape->members[i];

		if (shape->kind == KYMO_SHAPE_UNION && i)
			break;
		write_padding(out, at, member->bit, &n_paddings);
		write_member(out, member, i + 1, false);
		at = member->bit + (member->n_bits ? member->n_bits : 8 * (uint64_t)member->shape->size);
	}
	write_padding(out, at, 8 * (uint64_t)shape->size, &n_paddings);
	for (uint32_t i = 1; shape->kind == KYMO_SHAPE_UNION && i < shape->n; i++)
		write_member(out, &shape->members[i], i + 1, true);
}

void kymo_tsdl_shape(FILE *out, const struct kymo_shape *shape)
{
	fputs("struct { ", out);
	if (shape->kind == KYMO_SHAPE_BYTES) {
		fprintf(out, "u8 " KYMO_TSDL_CUT "[%" PRIu32 "]; }", shape->size);
		return;
	}
	write_members(out, shape);
	if (shape->kind == KYMO_SHAPE_UNION)
		fputs("struct { } " KYMO_TSDL_UNION "; ", out);
	if (shape->is_cut)
		fputs("struct { } " KYMO_TSDL_CUT "; ", out);
	putc('}', out);
}
