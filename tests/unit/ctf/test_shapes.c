/* Fields that are structures: in the metadata, and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

static void put(struct kymo_shape *shape, enum kymo_shape_role role, const char *name, uint32_t bit, uint8_t n_bits,
		struct kymo_shape *its)
{
	assert_non_null(its);
	assert_true(kymo_shape_add(shape, role, name, strlen(name), bit, n_bits, its));
}

static struct kymo_shape *integer(uint32_t size, bool is_signed, bool is_hex)
{
	struct kymo_shape *shape = kymo_shape_create(KYMO_SHAPE_INTEGER, size);

	shape->is_signed = is_signed;
	shape->is_hex = is_hex;
	return shape;
}

static struct kymo_shape *array(uint32_t n, struct kymo_shape *of)
{
	struct kymo_shape *shape = kymo_shape_create(KYMO_SHAPE_ARRAY, n * of->size);

	shape->n = n;
	shape->of = of;
	return shape;
}

static struct kymo_shape *left_out(uint32_t size)
{
	struct kymo_shape *shape = kymo_shape_create(KYMO_SHAPE_BYTES, size);

	shape->is_cut = true;
	return shape;
}

static struct kymo_shape *state(void)
{
	struct kymo_shape *shape = integer(4, true, false);

	shape->naming = kymo_naming_create();
	assert_int_equal(kymo_naming_add(shape->naming, "IDLE", 4, 0), 0);
	assert_int_equal(kymo_naming_add(shape->naming, "GONE", 4, -1), 0);
	assert_int_equal(kymo_naming_add(shape->naming, "FAR", 3, 9), 0); /* four bits and a sign do not have it */
	return shape;
}

static struct kymo_shape *number_union(void)
{
	struct kymo_shape *shape = kymo_shape_create(KYMO_SHAPE_UNION, 8);

	put(shape, KYMO_SHAPE_NAMED, "i", 0, 0, integer(4, true, false));
	put(shape, KYMO_SHAPE_NAMED, "low", 0, 3, integer(4, false, false));
	put(shape, KYMO_SHAPE_NAMED, "halves", 0, 0, array(4, integer(2, false, false)));
	return shape;
}

/* Every kind of member. Its 64 bytes end with two that are of none. */
static struct kymo_shape *everything(void)
{
	struct kymo_shape *shape = kymo_shape_create(KYMO_SHAPE_STRUCT, 64), *name, *empty;

	empty = kymo_shape_create(KYMO_SHAPE_STRUCT, 0);
	put(shape, KYMO_SHAPE_BASE, "shop::Base<int>", 0, 0, empty);
	put(shape, KYMO_SHAPE_NAMED, "fd", 0, 0, integer(4, true, false));
	put(shape, KYMO_SHAPE_NAMED, "flags", 32, 3, integer(4, false, false));
	put(shape, KYMO_SHAPE_NAMED, "delta", 37, 5, integer(4, true, false));
	put(shape, KYMO_SHAPE_NAMED, "few", 42, 4, state());
	put(shape, KYMO_SHAPE_NAMED, "peer", 64, 0, integer(8, false, true));
	put(shape, KYMO_SHAPE_ANONYMOUS, "", 128, 0, number_union());
	put(shape, KYMO_SHAPE_NAMED, "load", 192, 0, kymo_shape_create(KYMO_SHAPE_FLOAT, 8));
	put(shape, KYMO_SHAPE_NAMED, "state", 256, 0, state());
	name = integer(1, true, false);
	name->naming = kymo_naming_characters();
	put(shape, KYMO_SHAPE_NAMED, "name", 288, 0, array(4, name));
	put(shape, KYMO_SHAPE_NAMED, "raw", 320, 0, kymo_shape_create(KYMO_SHAPE_BYTES, 3));
	put(shape, KYMO_SHAPE_NAMED, "table", 344, 0, array(2, array(3, integer(1, false, false))));
	put(shape, KYMO_SHAPE_NAMED, "deep", 400, 0, left_out(6));
	put(shape, KYMO_SHAPE_NAMED, "list", 448, 0, array(2, left_out(3)));
	shape->is_cut = true;
	return shape;
}

#define STATES_OF_FEW "{ \"GONE\" = -1, \"IDLE\" = 0 }"
#define BITS(size, is_signed) \
	"integer { size = " #size "; align = 1; signed = " is_signed "; byte_order = le; base = 10; }"
/* clang-format off */
static const char expected[] =
	"struct { struct { } base_shop__Base_int_; s32 _fd; " BITS(3, "false") " _flags; " BITS(2, "false")
	" padding1; " BITS(5, "true") " _delta; enum : " BITS(4, "true") " " STATES_OF_FEW " _few; "
	BITS(2, "false") " padding2; u8 padding3[2]; x64 _peer; struct { s32 _i; u8 padding1[4]; "
	BITS(3, "false") " _low[0]; u16 _halves[0][4]; struct { } union; } anonymous7; f64 _load; "
	"enum : s32 { \"GONE\" = -1, \"IDLE\" = 0, \"FAR\" = 9 } _state; integer { size = 8; align = 8; "
	"signed = true; byte_order = le; encoding = UTF8; base = 10; } _name[4]; x8 _raw[3]; "
	"u8 _table[2][3]; u8 padding4[1]; struct { u8 cut[6]; } _deep; struct { u8 cut[3]; } _list[2]; "
	"u8 padding5[2]; struct { } cut; }";
/* clang-format on */

/* ---- tests ----------------------------------------------------------------------------------- */

/* The text of a trace's metadata whose event has the shape as a structure and as an array. */
static char *metadata_with(struct kymo_shape *shape)
{
	struct kymo_ctf_field fields[] = {
		{ .name = (char *)"c", .type = KYMO_TYPE_BYTES, .shape = shape },
		{ .name = (char *)"list", .type = KYMO_TYPE_BYTES, .shape = shape, .is_list = true },
		{ .name = (char *)"n", .type = KYMO_TYPE_U8 },
	};
	struct kymo_ctf_event event = { .id = 3, .name = (char *)"call", .fields = fields, .n_fields = 3 };
	struct kymo_ctf_trace trace = synthetic_trace();

	trace.events = &event;
	trace.n_events = 1;
	return metadata_of(&trace);
}

static void structures_are_types_of_ctf(void **test)
{
	struct kymo_shape *shape = everything();
	kymo_cleanup_free char *text = metadata_with(shape), *whole = NULL;

	assert_true(asprintf(&whole,
			     "\t\tenum : u16 { \"absent\" = 0, \"present\" = 1 } _c_present;\n"
			     "\t\tvariant <_c_present> { struct { } absent; %s present; } _c;\n"
			     "\t\tu16 _list_length;\n\t\t%s _list[_list_length];\n\t\tu8 _n;\n",
			     expected, expected) > 0);
	if (!strstr(text, whole))
		fail_msg("no\n%s in\n%s", whole, text);
	kymo_shape_release(shape);
}

/* What is read and written again is the same text: nothing is lost. */
static void structures_are_read_back(void **test)
{
	struct kymo_shape *shape = everything();
	kymo_cleanup_free char *text = metadata_with(shape), *again = NULL;
	struct kymo_ctf_trace back;
	const struct kymo_ctf_field *fields;

	must(kymo_ctf_parse_metadata(text, strlen(text), &back));
	fields = back.events[0].fields;
	assert_int_equal(back.events[0].n_fields, 3);
	assert_string_equal(fields[0].name, "c");
	assert_false(fields[0].is_list);
	assert_true(fields[1].is_list);
	assert_int_equal(fields[0].shape->size, 64);
	assert_int_equal(kymo_ctf_element_size(&fields[1]), 64);
	assert_true(fields[0].shape->is_cut);
	again = metadata_with(fields[1].shape);
	assert_string_equal(again, text);
	kymo_ctf_trace_deinit(&back);
	kymo_shape_release(shape);
}

static void what_is_no_structure_is_refused(void **test)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "variant <_c_present>", "variant <_n>" },
		{ "present; } _c;", "present; } _d;" },
		{ "present; } _c;", "present; } c;" },
		{ "_list[_list_length]", "_list[_n]" },
		{ "_list[_list_length]", "_other[_list_length]" },
		{ "_list[_list_length]", "_list" },
		{ "u16 _list_length;\n", "" },
		{ "u16 _list_length;", "u32 _list_length;" },
		{ "s32 _fd;", "s32 fd;" },
		{ "s32 _fd;", "string _fd;" },
		{ "s32 _fd;", "s32 _fd[0];" },
		{ "s32 _fd;", "s32 _fd[513];" },
		{ "s32 _fd;", "s32 _fd[400][2];" },
		{ "s32 _fd;", "s32 _fd[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1];" },
		{ "u8 padding1[4];", "" }, /* a member is larger than its union */
		{ "u8 padding3[2]; ", "u8 padding3[500]; " },
		{ BITS(2, "false") " padding2; ", "" }, /* a byte begins within a byte */
		{ BITS(3, "false") " _flags;",
		  "integer { size = 65; align = 1; signed = false; byte_order = le; base = 10; } _flags;" },
		{ BITS(3, "false") " _flags;",
		  "integer { size = 0; align = 1; signed = false; byte_order = le; base = 10; } _flags;" },
		{ BITS(3, "false") " _flags;", BITS(3, "false") " _flags[2];" },
		{ "struct { u8 cut[6]; }", "struct { u8 _x; u8 cut[6]; }" },
		{ "struct { } union;", "" },
		{ "s32 _fd;", "s32 _delta;" }, /* two members of one name */
		{ "_flags;", "_fd;" },
		{ "struct { } cut; }", "struct { } cut; " },
		{ "f64 _load;", "variant <_x> { f64 _load; } _y;" },
	};
	struct kymo_shape *shape = everything();
	kymo_cleanup_free char *text = metadata_with(shape);

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		kymo_cleanup_free char *changed = replaced(text, cases[i].from, cases[i].to);
		struct kymo_ctf_trace back;
		struct kymo_error *error = kymo_ctf_parse_metadata(changed, strlen(changed), &back);

		if (!error)
			fail_msg("%s is taken for %s", cases[i].to, cases[i].from);
		kymo_error_destroy(error);
	}
	kymo_shape_release(shape);
}

static void structures_have_a_bound(void **test)
{
	struct kymo_shape *shape = everything();
	kymo_cleanup_free char *text = metadata_with(shape);

	for (unsigned int depth = 1; depth < 100; depth += 5) {
		kymo_cleanup_free char *nested = NULL, *changed = NULL;
		struct kymo_ctf_trace back;
		struct kymo_error *error;
		size_t size;
		FILE *out = open_memstream(&nested, &size);

		for (unsigned int i = 0; i < depth; i++)
			fputs("struct { ", out);
		fputs("u8 _x; ", out);
		for (unsigned int i = 0; i < depth; i++)
			fprintf(out, "} _s%s", i + 1 < depth ? "; " : ";");
		fclose(out);
		changed = replaced(text, "s32 _fd;", nested);
		error = kymo_ctf_parse_metadata(changed, strlen(changed), &back);
		assert_true(!error == (depth <= KYMO_SHAPE_DEPTH_MAX));
		if (!error)
			kymo_ctf_trace_deinit(&back);
		kymo_error_destroy(error);
	}
	kymo_shape_release(shape);
}

static void records_of_structures_end_after_them(void **test)
{
	struct kymo_shape *shape = everything();
	struct kymo_ctf_field fields[] = {
		{ .name = (char *)"c", .type = KYMO_TYPE_BYTES, .shape = shape },
		{ .name = (char *)"list", .type = KYMO_TYPE_BYTES, .shape = shape, .is_list = true },
	};
	const struct kymo_ctf_event event = {
		.id = 3, .name = (char *)"call", .fields = fields, .n_fields = 2, .has_faults = true
	};
	uint8_t body[1 + 2 + 64 + 2 + 3 * 64] = { 0, 1 };
	uint32_t size;

	body[1 + 2 + 64] = 3;
	assert_true(kymo_ctf_body_size(&event, body, sizeof(body), &size));
	assert_int_equal(size, sizeof(body));
	assert_false(kymo_ctf_body_size(&event, body, sizeof(body) - 1, &size));
	body[1] = 2; /* one structure or none */
	assert_false(kymo_ctf_body_size(&event, body, sizeof(body), &size));
	body[1] = 0; /* absent: what follows is another number */
	body[3] = body[4] = 0;
	assert_true(kymo_ctf_body_size(&event, body, sizeof(body), &size));
	assert_int_equal(size, 1 + 2 + 2);
	kymo_shape_release(shape);
}

static void values_are_taken_out_of_bytes(void **test)
{
	static const uint8_t bytes[] = { 0x83, 0xff, 0x7f, 0x01 };
	struct kymo_shape *signed_one = integer(2, true, false), *plain = integer(4, false, false);

	assert_int_equal(kymo_shape_value(plain, bytes, 4, 0, 0), 0x017fff83);
	assert_int_equal(kymo_shape_value(plain, bytes, 4, 4, 8), 0xf8);
	assert_int_equal(kymo_shape_value(plain, bytes, 4, 16, 0), 0x017f); /* no bytes are behind */
	assert_int_equal((int64_t)kymo_shape_value(signed_one, bytes, 4, 0, 0), -125);
	assert_int_equal((int64_t)kymo_shape_value(signed_one, bytes, 4, 0, 2), -1);
	assert_int_equal((int64_t)kymo_shape_value(signed_one, bytes, 4, 0, 3), 3);
	kymo_shape_release(signed_one);
	kymo_shape_release(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structures_are_types_of_ctf),          cmocka_unit_test(structures_are_read_back),
		cmocka_unit_test(what_is_no_structure_is_refused),      cmocka_unit_test(structures_have_a_bound),
		cmocka_unit_test(records_of_structures_end_after_them), cmocka_unit_test(values_are_taken_out_of_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
