/* Structures of the source as shapes: what members become, and what is left out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "expr/shape.h"

#define LIMITS \
	(struct kymo_shape_limits) \
	{ \
		.depth = KYMO_SHAPE_DEPTH_MAX, .size = KYMO_SHAPE_SIZE_MAX \
	}

/* ---- types ----------------------------------------------------------------------------------- */

static const struct kymo_ctype t_int = { .kind = KYMO_CTYPE_INTEGER, .name = "int", .size = 4, .is_signed = true };
static const struct kymo_ctype t_char = { .kind = KYMO_CTYPE_CHARACTER, .name = "char", .size = 1, .is_signed = true };
static const struct kymo_ctype t_uchar = { .kind = KYMO_CTYPE_CHARACTER, .name = "unsigned char", .size = 1 };
static const struct kymo_ctype t_double = { .kind = KYMO_CTYPE_FLOAT, .name = "double", .size = 8 };
static const struct kymo_ctype t_long_double = { .kind = KYMO_CTYPE_FLOAT, .name = "long double", .size = 16 };
static const struct kymo_ctype t_pointer = { .kind = KYMO_CTYPE_POINTER, .name = "void *", .size = 8 };
static const struct kymo_ctype t_enum = { .kind = KYMO_CTYPE_ENUM, .name = "enum e", .size = 4 };
static const struct kymo_ctype t_chars = {
	.kind = KYMO_CTYPE_ARRAY, .name = "char[4]", .size = 4, .of = &t_char, .n = 4
};
static const struct kymo_ctype t_bytes = {
	.kind = KYMO_CTYPE_ARRAY, .name = "unsigned char[4]", .size = 4, .of = &t_uchar, .n = 4
};
static const struct kymo_ctype t_rest = { .kind = KYMO_CTYPE_ARRAY, .name = "int[]", .of = &t_int };
static const struct kymo_ctype t_small = { .kind = KYMO_CTYPE_STRUCT, .name = "struct small", .size = 8 };
static const struct kymo_ctype t_empty = { .kind = KYMO_CTYPE_STRUCT, .name = "Empty", .size = 1 };
static const struct kymo_ctype t_loose = { .kind = KYMO_CTYPE_STRUCT, .name = "Loose", .size = 8 };
static const struct kymo_ctype t_union = { .kind = KYMO_CTYPE_UNION, .name = "union u", .size = 8 };
static const struct kymo_ctype t_self = { .kind = KYMO_CTYPE_STRUCT, .name = "struct self", .size = 8 };
static const struct kymo_ctype t_wide = { .kind = KYMO_CTYPE_STRUCT, .name = "struct wide", .size = 64 };
static const struct kymo_ctype t_unknown = { .kind = KYMO_CTYPE_STRUCT, .name = "struct unknown", .size = 8 };
static const struct kymo_ctype t_liar = { .kind = KYMO_CTYPE_STRUCT, .name = "struct liar", .size = 8 };
static const struct kymo_ctype t_large = { .kind = KYMO_CTYPE_STRUCT, .name = "struct large", .size = 4000 };
static const struct kymo_ctype t_derived = { .kind = KYMO_CTYPE_STRUCT, .name = "Derived", .size = 16 };
static const struct kymo_ctype t_nested = { .kind = KYMO_CTYPE_STRUCT, .name = "Nested", .size = 2 };
static const struct kymo_ctype t_holder = { .kind = KYMO_CTYPE_STRUCT, .name = "Holder", .size = 8 };
static const struct kymo_ctype t_twice = { .kind = KYMO_CTYPE_STRUCT, .name = "Twice", .size = 8 };
static const struct kymo_ctype t_outer = { .kind = KYMO_CTYPE_STRUCT, .name = "Outer", .size = 24 };
static const struct kymo_ctype t_hundred = {
	.kind = KYMO_CTYPE_ARRAY, .name = "int[100]", .size = 400, .of = &t_int, .n = 100
};

/* The members of a type, up to one without a type. */
static const struct kymo_ctype_member *members_of(const struct kymo_ctype *type)
{
	static const struct kymo_ctype_member small[] = { { .name = "x", .type = &t_int },
							  { .name = "y", .type = &t_int, .offset = 4 },
							  { 0 } };
	static const struct kymo_ctype_member loose[] = { { .name = "c", .type = &t_int },
							  { .name = "d", .type = &t_char, .offset = 4 },
							  { 0 } };
	static const struct kymo_ctype_member in_union[] = { { .name = "i", .type = &t_int },
							     { .name = "d", .type = &t_double },
							     { .name = "late", .type = &t_int, .offset = 4 },
							     { 0 } };
	static const struct kymo_ctype_member self[] = { { .name = "me", .type = &t_self }, { 0 } };
	static const struct kymo_ctype_member empty[] = { { 0 } };
	static const struct kymo_ctype_member wide[] = {
		{ .name = "tail", .type = &t_rest, .offset = 64 }, /* the order is Rust's: any */
		{ .name = "text", .type = &t_chars, .offset = 4 },
		{ .name = "i", .type = &t_int },
		{ .name = "bits", .type = &t_int, .offset = 8, .bit_size = 3, .bit_shift = 2 },
		{ .name = "e", .type = &t_enum, .offset = 8, .bit_size = 2, .bit_shift = 5 },
		{ .name = "raw", .type = &t_bytes, .offset = 12 },
		{ .name = "p", .type = &t_pointer, .offset = 16 },
		{ .name = "in", .type = &t_small, .offset = 24 },
		{ .type = &t_union, .offset = 32 },
		{ .name = "ld", .type = &t_long_double, .offset = 48 },
		{ .name = "uc", .type = &t_uchar, .offset = 40 },
		{ 0 },
	};
	static const struct kymo_ctype_member liar[] = {
		{ .name = "a", .type = &t_int },
		{ .name = "over", .type = &t_int, .offset = 2 },
		{ .name = "beyond", .type = &t_int, .offset = 6 },
		{ .name = "far", .type = &t_int, .offset = 1ull << 62 },
		{ .name = "none", .type = NULL, .offset = 4, .is_base = true },
		{ .name = "b", .type = &t_int, .offset = 4 },
		{ .name = "b", .type = &t_empty, .offset = 8 },
		{ 0 },
	};
	static const struct kymo_ctype_member large[] = {
		{ .name = "a", .type = &t_hundred },
		{ .name = "b", .type = &t_int, .offset = 400 },
		{ .name = "c", .type = &t_hundred, .offset = 404 },
		{ .name = "d", .type = &t_int, .offset = 804 },
		{ 0 },
	};
	static const struct kymo_ctype_member derived[] = {
		{ .type = &t_empty, .is_base = true },
		{ .type = &t_loose, .is_base = true },
		{ .name = "in_padding", .type = &t_char, .offset = 5 },
		{ .name = "d", .type = &t_double, .offset = 8 },
		{ 0 },
	};

	static const struct kymo_ctype_member nested[] = { { .type = &t_empty, .is_base = true },
							   { .name = "e", .type = &t_empty, .offset = 1 },
							   { 0 } };
	static const struct kymo_ctype_member holder[] = {
		{ .type = &t_nested, .is_base = true },
		{ .name = "p", .type = &t_pointer },
		{ 0 },
	};
	static const struct kymo_ctype_member derived_twice[] = { { .type = &t_loose, .is_base = true }, { 0 } };
	static const struct kymo_ctype_member outer[] = {
		{ .name = "twice", .type = &t_twice },
		{ .name = "in_padding", .type = &t_char, .offset = 5 },
		{ .name = "hider", .type = &t_holder, .offset = 8 },
		{ .name = "last", .type = &t_int, .offset = 16 },
		{ .name = "none", .type = &t_nested, .offset = 16 }, /* it comes first */
		{ .name = "within", .type = &t_empty, .offset = 17 },
		{ 0 },
	};

	return type == &t_small     ? small
	       : type == &t_nested  ? nested
	       : type == &t_holder  ? holder
	       : type == &t_twice   ? derived_twice
	       : type == &t_outer   ? outer
	       : type == &t_loose   ? loose
	       : type == &t_union   ? in_union
	       : type == &t_self    ? self
	       : type == &t_wide    ? wide
	       : type == &t_liar    ? liar
	       : type == &t_large   ? large
	       : type == &t_derived ? derived
				    : empty;
}

static struct kymo_error *parts(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				size_t *n_ret)
{
	*ret = members_of(type);
	for (*n_ret = 0; (*ret)[*n_ret].type || (*ret)[*n_ret].name; ++*n_ret)
		;
	return NULL;
}

static struct kymo_error *enumerators(void *data, const struct kymo_ctype *type,
				      const struct kymo_ctype_enumerator **ret, size_t *n_ret)
{
	static const struct kymo_ctype_enumerator items[] = { { "A", 0 }, { "B", 1 } };

	*ret = items;
	*n_ret = 2;
	return NULL;
}

static const struct kymo_expr_names names = { .parts = parts, .enumerators = enumerators };

/* ---- as text --------------------------------------------------------------------------------- */

static void show(FILE *out, const struct kymo_shape *shape)
{
	static const char *const kinds[] = { "int", "float", "bytes", "struct", "union", "array" };

	fprintf(out, "%s%s%u",
		shape->is_hex      ? "hex "
		: shape->is_signed ? "signed "
				   : "",
		kinds[shape->kind], shape->size);
	if (shape->naming)
		fputs(shape->naming->is_character ? " char" : " named", out);
	if (shape->of) {
		fprintf(out, " of %u ", shape->n);
		show(out, shape->of);
	}
	for (uint32_t i = 0; i < (shape->of ? 0 : shape->n); i++) {
		const struct kymo_shape_member *member = &shape->members[i];

		fprintf(out, "%s%s%s@%u", i ? ", " : " {", member->role == KYMO_SHAPE_BASE ? "base " : "",
			member->name ? member->name : "", member->bit);
		if (member->n_bits)
			fprintf(out, ":%u", member->n_bits);
		putc(' ', out);
		show(out, member->shape);
	}
	fputs(shape->n && !shape->of ? "}" : "", out);
	fputs(shape->is_cut ? "..." : "", out);
}

static void becomes(const struct kymo_ctype *type, struct kymo_shape_limits limits, const char *expected)
{
	kymo_cleanup_free char *text = NULL;
	struct kymo_shape *shape = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_null(kymo_expr_shape(&names, kymo_expr_type_of(type), limits, &shape));
	if (shape)
		show(out, shape);
	fclose(out);
	assert_string_equal(text, expected);
	kymo_shape_release(shape);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void members_stand_as_memory_has_them(void **state)
{
	becomes(&t_small, LIMITS, "struct8 {x@0 signed int4, y@32 signed int4}");
	becomes(&t_wide, LIMITS,
		"struct64 {i@0 signed int4, text@32 array4 of 4 signed int1 char, bits@66:3 signed int4, e@69:2 int4 "
		"named, "
		"raw@96 array4 of 4 hex int1, p@128 hex int8, in@192 struct8 {x@0 signed int4, y@32 signed int4}, "
		"@256 union8 {i@0 signed int4, d@0 float8}..., uc@320 int1 char, ld@384 bytes16}");
}

static void base_classes_are_as_large_as_what_they_hold(void **state)
{
	becomes(&t_derived, LIMITS,
		"struct16 {base Empty@0 struct0, base Loose@0 struct5 {c@0 signed int4, d@32 signed int1 char}, "
		"in_padding@40 signed int1 char, d@64 float8}");
}

static void what_is_empty_hides_nothing(void **state)
{
	becomes(&t_holder, LIMITS, "struct8 {base Nested@0 struct0 {base Empty@0 struct0, e@0 struct0}, p@0 hex int8}");
	becomes(&t_outer, LIMITS,
		"struct24 {twice@0 struct5 {base Loose@0 struct5 {c@0 signed int4, d@32 signed int1 char}}, "
		"in_padding@40 signed int1 char, "
		"hider@64 struct8 {base Nested@0 struct0 {base Empty@0 struct0, e@0 struct0}, p@0 hex int8}, "
		"none@128 struct0 {base Empty@0 struct0, e@0 struct0}, last@128 signed int4}");
}

static void structures_within_the_depth_keep_their_members(void **state)
{
	const struct kymo_shape_limits one = { .depth = 1, .size = KYMO_SHAPE_SIZE_MAX };

	becomes(&t_small, one, "struct8 {x@0 signed int4, y@32 signed int4}");
	becomes(&t_derived, one,
		"struct16 {base Empty@0 struct0..., base Loose@0 bytes5..., in_padding@40 signed int1 char, d@64 "
		"float8}");
}

static void members_that_end_after_the_limit_are_left_out(void **state)
{
	becomes(&t_large, LIMITS, "struct404 {a@0 array400 of 100 signed int4, b@3200 signed int4}...");
	becomes(&t_large, ((struct kymo_shape_limits){ .depth = 1, .size = 403 }),
		"struct400 {a@0 array400 of 100 signed int4}...");
	becomes(&t_large, ((struct kymo_shape_limits){ .depth = 1, .size = 399 }), "");
	becomes(&t_wide, ((struct kymo_shape_limits){ .depth = 1, .size = 9 }),
		"struct9 {i@0 signed int4, text@32 array4 of 4 signed int1 char, bits@66:3 signed int4, e@69:2 int4 "
		"named}...");
}

static void types_that_contain_themselves_end(void **state)
{
	kymo_cleanup_free char *expected = NULL;
	size_t size;
	FILE *out = open_memstream(&expected, &size);

	for (unsigned int i = 0; i < KYMO_SHAPE_DEPTH_MAX; i++)
		fputs("struct8 {me@0 ", out);
	fputs("bytes8...", out);
	for (unsigned int i = 0; i < KYMO_SHAPE_DEPTH_MAX; i++)
		putc('}', out);
	fclose(out);
	becomes(&t_self, LIMITS, expected);
}

static void members_that_lie_elsewhere_are_left_out(void **state)
{
	becomes(&t_liar, LIMITS, "struct8 {a@0 signed int4, b@32 signed int4}...");
}

static void rows_of_arrays_are_arrays(void **state)
{
	static const struct kymo_ctype
		row = { .kind = KYMO_CTYPE_ARRAY, .name = "int[3]", .size = 12, .of = &t_int, .n = 3 },
		table = { .kind = KYMO_CTYPE_ARRAY, .name = "int[2][3]", .size = 24, .of = &row, .n = 2 };
	const struct kymo_ctype *const others[] = { &row, &t_int, &t_small, &t_pointer };
	struct kymo_shape *shape;

	assert_null(kymo_expr_row_shape(&names, kymo_expr_type_of(&table), LIMITS, &shape));
	assert_int_equal(shape->size, 12);
	assert_int_equal(shape->n, 1);
	assert_int_equal(shape->members[0].role, KYMO_SHAPE_ANONYMOUS);
	assert_int_equal(shape->members[0].shape->kind, KYMO_SHAPE_ARRAY);
	assert_int_equal(shape->members[0].shape->n, 3);
	kymo_shape_release(shape);
	for (size_t i = 0; i < kymo_countof(others); i++) {
		assert_null(kymo_expr_row_shape(&names, kymo_expr_type_of(others[i]), LIMITS, &shape));
		assert_null(shape);
	}
}

static void what_has_no_members_has_no_shape(void **state)
{
	becomes(&t_unknown, LIMITS, "");
	becomes(&t_int, LIMITS, "");
	becomes(&t_chars, LIMITS, "");
}

static struct kymo_error *failing(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				  size_t *n_ret)
{
	if (type == &t_small)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "damaged");
	return parts(data, type, ret, n_ret);
}

static void errors_of_names_come_back(void **state)
{
	const struct kymo_expr_names damaged = { .parts = failing, .enumerators = enumerators };
	struct kymo_shape *shape;
	struct kymo_error *error = kymo_expr_shape(&damaged, kymo_expr_type_of(&t_wide), LIMITS, &shape);

	assert_non_null(error);
	assert_string_equal(error->message, "damaged");
	assert_null(shape);
	kymo_error_destroy(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_stand_as_memory_has_them),
		cmocka_unit_test(base_classes_are_as_large_as_what_they_hold),
		cmocka_unit_test(what_is_empty_hides_nothing),
		cmocka_unit_test(structures_within_the_depth_keep_their_members),
		cmocka_unit_test(members_that_end_after_the_limit_are_left_out),
		cmocka_unit_test(types_that_contain_themselves_end),
		cmocka_unit_test(members_that_lie_elsewhere_are_left_out),
		cmocka_unit_test(rows_of_arrays_are_arrays),
		cmocka_unit_test(what_has_no_members_has_no_shape),
		cmocka_unit_test(errors_of_names_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
