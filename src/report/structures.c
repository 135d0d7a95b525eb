#include "report/structures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "ctf/ctf.h"
#include "report/namings.h"
#include "report/text.h"

#define REPEATS_MIN 10 /* elements that are told by their number, as gdb does */

/* A part of a structure: what begins at `bit` of the bytes. */
struct part {
	const struct kymo_shape *shape;
	const uint8_t *bytes;
	size_t size;
	uint64_t bit;
	uint8_t n_bits;
};

static struct part member_of(const struct part *whole, const struct kymo_shape_member *member)
{
	return (struct part){ member->shape, whole->bytes, whole->size, whole->bit + member->bit, member->n_bits };
}

/* What it stands for where it is an array's: of an array of several dimensions the elements are so (expr/shape.h). */
static struct part unwrap(const struct kymo_shape *shape, const uint8_t *bytes)
{
	const struct part part = { shape, bytes, shape->size, 0, 0 };

	if (shape->kind == KYMO_SHAPE_STRUCT && shape->n == 1 && shape->members[0].role == KYMO_SHAPE_ANONYMOUS &&
	    shape->members[0].shape->kind == KYMO_SHAPE_ARRAY)
		return member_of(&part, &shape->members[0]);
	return part;
}

static struct part element_of(const struct part *array, uint32_t i)
{
	const struct kymo_shape *of = array->shape->of;

	return (struct part){ of, array->bytes, array->size, array->bit + 8 * (uint64_t)i * of->size, 0 };
}

static uint64_t value_of(const struct part *part)
{
	return kymo_shape_value(part->shape, part->bytes, part->size, part->bit, part->n_bits);
}

static bool is_character(const struct kymo_shape *shape)
{
	return shape->kind == KYMO_SHAPE_INTEGER && shape->naming && shape->naming->is_character;
}

static bool is_text(const struct kymo_shape *shape)
{
	return shape->kind == KYMO_SHAPE_ARRAY && is_character(shape->of);
}

/* Up to the first NUL, in fresh memory. */
static char *text_of(const struct part *part)
{
	return strndup((const char *)part->bytes + part->bit / 8, part->shape->size);
}

static uint8_t byte_of(const struct part *part, uint32_t i)
{
	return part->bytes[part->bit / 8 + i];
}

static enum kymo_type real_type(const struct kymo_shape *shape)
{
	return shape->size == 4 ? KYMO_TYPE_F32 : KYMO_TYPE_F64;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void write_part(FILE *out, const struct part *part, bool unicode);

static void write_number(FILE *out, const struct kymo_shape *shape, uint64_t value)
{
	fprintf(out, shape->is_hex ? "0x%" PRIx64 : shape->is_signed ? "%" PRId64 : "%" PRIu64, value);
}

/* 'a', '\n', '\033'. */
static void write_character(FILE *out, unsigned char c)
{
	static const char from[] = "\a\b\t\n\v\f\r\\'", to[] = "abtnvfr\\'";
	const char *known = c ? strchr(from, c) : NULL;

	if (known)
		fprintf(out, " '\\%c'", to[known - from]);
	else if (c >= ' ' && c < 0x7f)
		fprintf(out, " '%c'", c);
	else
		fprintf(out, " '\\%03o'", c);
}

static void write_integer(FILE *out, const struct part *part, bool unicode)
{
	const struct kymo_shape *shape = part->shape;
	const uint64_t value = value_of(part);
	kymo_cleanup_free char *label = NULL;

	if (is_character(shape)) {
		write_number(out, shape, value);
		write_character(out, (unsigned char)value);
		return;
	}
	label = kymo_naming_label(shape->naming, value, unicode);
	if (label)
		fprintf(out, strstr(label, " | ") ? "(%s)" : "%s", label);
	else
		write_number(out, shape, value);
}

/* How many of the `n` elements of `size` bytes from `bytes` on are as the first one. */
static uint32_t count_repeats(const uint8_t *bytes, uint32_t size, uint32_t n)
{
	uint32_t same = 1;

	while (same < n && !memcmp(bytes, bytes + (size_t)same * size, size))
		same++;
	return same;
}

/* From element `i` on: its number is told in place of elements that are the same. Returns how many are done. */
static uint32_t end_element(FILE *out, const struct part *array, uint32_t size, uint32_t n, uint32_t i)
{
	const uint32_t same = count_repeats(array->bytes + array->bit / 8 + (size_t)i * size, size, n - i);

	if (same < REPEATS_MIN)
		return 1;
	fprintf(out, " <repeats %" PRIu32 " times>", same);
	return same;
}

static void write_bytes(FILE *out, const struct part *part)
{
	const uint32_t n = part->shape->size;

	putc('{', out);
	for (uint32_t i = 0; i < n; i += end_element(out, part, 1, n, i))
		fprintf(out, "%s0x%x", i ? ", " : "", byte_of(part, i));
	putc('}', out);
}

static void write_array(FILE *out, const struct part *part, bool unicode)
{
	const uint32_t n = part->shape->n;

	putc('{', out);
	for (uint32_t i = 0; i < n; i += end_element(out, part, part->shape->of->size, n, i)) {
		const struct part element = element_of(part, i);

		fputs(i ? ", " : "", out);
		write_part(out, &element, unicode);
	}
	putc('}', out);
}

static void write_members(FILE *out, const struct part *part, bool unicode)
{
	const struct kymo_shape *shape = part->shape;

	putc('{', out);
	for (uint32_t i = 0; i < shape->n; i++) {
		const struct kymo_shape_member *member = &shape->members[i];
		const struct part its = member_of(part, member);

		fputs(i ? ", " : "", out);
		if (member->role != KYMO_SHAPE_ANONYMOUS)
			fprintf(out, member->role == KYMO_SHAPE_BASE ? "<%s> = " : "%s = ", member->name);
		write_part(out, &its, unicode);
	}
	if (shape->is_cut)
		fputs(shape->n ? ", ..." : "...", out);
	else if (!shape->n)
		fputs("<No data fields>", out);
	putc('}', out);
}

static void write_part(FILE *out, const struct part *part, bool unicode)
{
	kymo_cleanup_free char *text = NULL;
	char number[TEXT_NUMBER];

	switch (part->shape->kind) {
	case KYMO_SHAPE_INTEGER:
		write_integer(out, part, unicode);
		break;
	case KYMO_SHAPE_FLOAT:
		fputs(kymo_text_real(number, real_type(part->shape),
				     kymo_ctf_real(value_of(part), real_type(part->shape))),
		      out);
		break;
	case KYMO_SHAPE_BYTES:
		if (part->shape->is_cut)
			fputs("{...}", out);
		else
			write_bytes(out, part);
		break;
	case KYMO_SHAPE_ARRAY:
		text = is_text(part->shape) ? text_of(part) : NULL;
		if (text)
			kymo_text_quote(out, text, unicode);
		else
			write_array(out, part, unicode);
		break;
	default:
		write_members(out, part, unicode);
	}
}

void kymo_structure_write(FILE *out, const struct kymo_shape *shape, const uint8_t *bytes, bool unicode)
{
	const struct part part = unwrap(shape, bytes);

	write_part(out, &part, unicode);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_json(FILE *out, const struct part *part);

/* Members of structures without a name are those of the one around them. */
static const char *write_members_json(FILE *out, const struct part *part, const char *separator)
{
	const struct kymo_shape *shape = part->shape;

	for (uint32_t i = 0; i < shape->n; i++) {
		const struct kymo_shape_member *member = &shape->members[i];
		const struct part its = member_of(part, member);

		if (member->role == KYMO_SHAPE_ANONYMOUS && member->shape->members) {
			separator = write_members_json(out, &its, separator);
			continue;
		}
		if (!member->name)
			continue;
		fputs(separator, out);
		kymo_json_string(out, member->name);
		fputs(": ", out);
		write_json(out, &its);
		separator = ", ";
	}
	return separator;
}

static void write_array_json(FILE *out, const struct part *part)
{
	putc('[', out);
	for (uint32_t i = 0; i < part->shape->n; i++) {
		const struct part element = element_of(part, i);

		fputs(i ? ", " : "", out);
		write_json(out, &element);
	}
	putc(']', out);
}

static void write_bytes_json(FILE *out, const struct part *part)
{
	putc('"', out);
	for (uint32_t i = 0; i < part->shape->size; i++)
		fprintf(out, "%02x", byte_of(part, i));
	putc('"', out);
}

static void write_json(FILE *out, const struct part *part)
{
	const struct kymo_shape *shape = part->shape;
	kymo_cleanup_free char *text = NULL;
	char number[TEXT_NUMBER];
	double real;

	switch (shape->kind) {
	case KYMO_SHAPE_INTEGER:
		fprintf(out, shape->is_signed ? "%" PRId64 : "%" PRIu64, value_of(part));
		break;
	case KYMO_SHAPE_FLOAT:
		real = kymo_ctf_real(value_of(part), real_type(shape));
		fprintf(out, isfinite(real) ? "%s" : "\"%s\"", kymo_text_real(number, real_type(shape), real));
		break;
	case KYMO_SHAPE_BYTES:
		if (shape->is_cut)
			fputs("null", out);
		else
			write_bytes_json(out, part);
		break;
	case KYMO_SHAPE_ARRAY:
		text = is_text(shape) ? text_of(part) : NULL;
		if (text)
			kymo_json_string(out, text);
		else
			write_array_json(out, part);
		break;
	default:
		putc('{', out);
		write_members_json(out, part, "");
		putc('}', out);
	}
}

void kymo_structure_write_json(FILE *out, const struct kymo_shape *shape, const uint8_t *bytes)
{
	const struct part part = unwrap(shape, bytes);

	write_json(out, &part);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *write_names(FILE *out, const char *separator, const char *path, const struct part *part);

static const char *write_names_of_members(FILE *out, const char *separator, const char *path, const struct part *part)
{
	for (uint32_t i = 0; i < part->shape->n; i++) {
		const struct kymo_shape_member *member = &part->shape->members[i];
		const struct part its = member_of(part, member);
		kymo_cleanup_free char *longer = NULL;

		if (member->name && asprintf(&longer, "%s.%s", path, member->name) < 0) {
			longer = NULL;
			break;
		}
		separator = write_names(out, separator, longer ? longer : path, &its);
	}
	return separator;
}

static const char *write_names_of_elements(FILE *out, const char *separator, const char *path, const struct part *part)
{
	for (uint32_t i = 0; i < part->shape->n; i++) {
		const struct part element = element_of(part, i);
		kymo_cleanup_free char *longer = NULL;

		if (asprintf(&longer, "%s[%" PRIu32 "]", path, i) < 0) {
			longer = NULL;
			break;
		}
		separator = write_names(out, separator, longer, &element);
	}
	return separator;
}

static const char *write_names(FILE *out, const char *separator, const char *path, const struct part *part)
{
	kymo_cleanup_free char *text = NULL;

	if (part->shape->kind == KYMO_SHAPE_ARRAY)
		return write_names_of_elements(out, separator, path, part);
	if (part->shape->kind != KYMO_SHAPE_INTEGER)
		return write_names_of_members(out, separator, path, part);
	text = kymo_naming_text(part->shape->naming, (int64_t)value_of(part));
	if (!text)
		return separator;
	fputs(separator, out);
	kymo_json_string(out, path);
	fputs(": ", out);
	kymo_json_string(out, text);
	return ", ";
}

bool kymo_structure_write_names(FILE *out, const char *separator, const char *path, const struct kymo_shape *shape,
				const uint8_t *bytes)
{
	const struct part part = unwrap(shape, bytes);

	return write_names(out, separator, path, &part) != separator;
}
