/* Floating-point numbers in expressions: what the compiler of this file makes of the same text is what a form gives. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/caret.h"
#include "compiling.h"

/* Of one run of the expressions: in registers and vector registers, by the number of the name. */
static long l;
static unsigned long ul;
static int i;
static unsigned int u;
static unsigned char h;
static double d, e;
static float f, g;

static const struct kymo_ctype t_double = { .kind = KYMO_CTYPE_FLOAT, .name = "double", .size = 8 };
static const struct kymo_ctype t_float = { .kind = KYMO_CTYPE_FLOAT, .name = "float", .size = 4 };
static const struct kymo_ctype t_long_double = { .kind = KYMO_CTYPE_FLOAT, .name = "long double", .size = 16 };

static struct kymo_error *find(void *data, const char *text, const char *name, size_t size,
			       struct kymo_expr_meaning *ret)
{
	static const struct known known[] = {
		{ "l", { .code = KYMO_FORM_REGISTER, .value = 0 }, { .size = 8, .is_signed = true } },
		{ "ul", { .code = KYMO_FORM_REGISTER, .value = 1 }, { .size = 8 } },
		{ "i", { .code = KYMO_FORM_REGISTER, .value = 2 }, { .size = 4, .is_signed = true } },
		{ "u", { .code = KYMO_FORM_REGISTER, .value = 3 }, { .size = 4 } },
		{ "h", { .code = KYMO_FORM_REGISTER, .value = 4 }, { .size = 1 } },
		{ "p", { .code = KYMO_FORM_REGISTER, .value = 5 }, { .size = 8, .pointers = 1, .of = &t_double } },
		{ "d", { .code = KYMO_FORM_VECTOR, .value = 0 }, { .size = 8, .of = &t_double } },
		{ "e", { .code = KYMO_FORM_VECTOR, .value = 1 }, { .size = 8, .of = &t_double } },
		{ "f", { .code = KYMO_FORM_VECTOR, .value = 2 }, { .size = 4, .of = &t_float } },
		{ "g", { .code = KYMO_FORM_VECTOR, .value = 3 }, { .size = 4, .of = &t_float } },
		{ "ld", { .code = KYMO_FORM_VECTOR, .value = 4 }, { .size = 8, .of = &t_long_double } },
	};

	if (find_known(known, kymo_countof(known), name, size, ret))
		return NULL;
	return kymo_error_at(text, name, "there is no %.*s", (int)size, name);
}

static const struct kymo_expr_names names = { .find = find };

static uint64_t bits_of_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* With something before its bytes, as in a register. */
static uint64_t bits_of_float(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static uint64_t bits_of_whole(long value)
{
	return (uint64_t)value;
}

/* What is no number is one value, whatever its bits are. */
static bool is_nan(uint64_t bits, const char *type)
{
	double real;
	float single;

	memcpy(&real, &bits, sizeof(real));
	memcpy(&single, &bits, sizeof(single));
	return !strcmp(type, "double") ? isnan(real) : !strcmp(type, "float") && isnan(single);
}

static void is(const char *text, const char *type_name, uint64_t expected)
{
	const uint64_t registers[16] = { (uint64_t)l, ul, 0xabcdull << 48 | (uint32_t)i, 0xabcdull << 48 | u,
					 0xabcd00 | h };
	const uint64_t vectors[KYMO_FORM_VECTORS] = { bits_of_double(d), bits_of_double(e),
						      bits_of_float(f) | 7ull << 40, bits_of_float(g) | 7ull << 40 };
	const struct kymo_form_input input = { .registers = registers, .vectors = vectors };
	char name[KYMO_EXPR_TYPE_NAME_MAX];
	struct kymo_expr_type type;
	struct kymo_error *error;
	struct kymo_form form;
	uint64_t value = 0;

	error = compile(text, NULL, &form, &type);
	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_true(kymo_form_check(&form, 16, 255));
	assert_true(kymo_form_run(&form, &input, &value));
	if (strcmp(kymo_expr_type_name(type, name), type_name) != 0)
		fail_msg("%s is of type %s, not %s", text, name, type_name);
	if (value != expected && !(is_nan(value, type_name) && is_nan(expected, type_name)))
		fail_msg("%s is %#lx, not %#lx, with d %a e %a f %a g %a l %ld u %u", text, value, expected, d, e,
			 (double)f, (double)g, l, u);
}

/* `#type` is what C says that the expression is. */
#define same(type, expression) \
	do { \
		_Static_assert(_Generic((expression), type : 1, default : 0), "C's type"); \
		is(#expression, #type, \
		   _Generic((expression), double \
			    : bits_of_double, float \
			    : bits_of_float, default \
			    : bits_of_whole)(expression)); \
	} while (0)

static void compute(void)
{
	same(double, d + e);
	same(double, d - e);
	same(double, d *e);
	same(double, d / e);
	same(float, f + g);
	same(float, f - g);
	same(float, f *g);
	same(float, f / g);
	same(double, d + f);
	same(double, f *d);
	same(double, d * 2);
	same(float, f * 2);
	same(float, f * 2.5f);
	same(double, f * 2.5);
	same(double, 1e3 + d);
	same(double, d - .25e-2 * e + 3.);
	same(float, f + i);
	same(float, f + u);
	same(float, f - l);
	same(float, ul - g);
	same(double, d + h);
	same(double, d / l);
	same(double, ul *e);
	same(double, -d);
	same(float, -f);
	same(double, +d);
	same(double, -(d + 1.5) * -e);
	same(int, d > 1.5);
	same(int, d >= e);
	same(int, d < e);
	same(int, d <= f);
	same(int, d == e);
	same(int, d != e);
	same(int, f == g);
	same(int, f != g);
	same(int, f < 1);
	same(int, l > d);
	same(int, ul >= d);
	same(int, u == f);
	same(int, !d);
	same(int, !f);
	same(int, d &&f);
	same(int, d || i);
	same(int, i &&e);
	same(double, d ? e : d);
	same(double, f ? i : d);
	same(float, f > g ? f : g);
	same(double, i > 3 ? 1 : 2.5);
	same(float, (float)d);
	same(double, (double)f);
	same(double, (double)l);
	same(double, (double)ul);
	same(float, (float)l);
	same(float, (float)ul);
	same(float, (float)u);
	same(double, (double)i / 3);
	same(unsigned long, sizeof(d) + sizeof(float));
}

/* C leaves open what a number becomes that the other type does not have. */
static void convert(void)
{
	if (fabs(d) < 100) {
		same(long, (long)d);
		same(int, (int)d);
		same(short, (short)d);
		same(signed char, (signed char)d);
		same(int, (int)d % 3);
	}
	if (d > -1 && d < 200) {
		same(unsigned char, (unsigned char)d);
		same(unsigned int, (unsigned int)d);
	}
	if (d > -1 && d < 0x1p64)
		same(unsigned long, (unsigned long)d);
	if (fabs(d) < 0x1p63)
		same(long, (long)d);
	if (f > -1 && f < 0x1p64f)
		same(unsigned long, (unsigned long)f);
	if (fabsf(f) < 0x1p63f)
		same(long, (long)f * 2);
	is("(bool)d", "bool", d != 0);
	is("(bool)f", "bool", f != 0);
}

static void results_are_those_of_c(void **state)
{
	static const double reals[] = { 0,       -0.0,     1,         -1.5,  0.1,     3,        1e300,
					-1e-300, 5e-324,   99.99,     150.5, 0x1p63,  0x1.8p63, 0x1.fffffffffffffp62,
					4.25e9,  INFINITY, -INFINITY, NAN,   FLT_MAX, DBL_MAX };
	static const long wholes[] = { 0,
				       1,
				       -1,
				       7,
				       0x7fffffff,
				       -0x80000000l,
				       0x7fffffffffffffff,
				       (long)(1ul << 63),
				       (1l << 53) + 1,
				       (1l << 24) + 1,
				       -((1l << 62) + (1l << 8)),
				       0x7fffff4000000001 };

	for (size_t a = 0; a < kymo_countof(reals); a++) {
		for (size_t b = 0; b < kymo_countof(reals); b++) {
			const long whole = wholes[(a * kymo_countof(reals) + b) % kymo_countof(wholes)];

			d = reals[a];
			e = reals[b];
			f = (float)reals[a];
			g = (float)reals[b];
			l = whole;
			ul = (unsigned long)whole;
			i = (int)whole;
			u = (unsigned int)whole;
			h = (unsigned char)whole;
			compute();
			convert();
		}
	}
}

static void what_no_integer_has_is_the_least_one(void **state)
{
	d = 1e30;
	is("(long)d", "long", 1ul << 63);
	is("(int)d", "int", 0);
	is("(unsigned long)d", "unsigned long", 0);
	d = NAN;
	is("(long)d", "long", 1ul << 63);
}

static void constants_are_folded(void **state)
{
	kymo_cleanup_free char *shown = NULL;
	struct kymo_expr_type type;
	struct kymo_form form;
	size_t size;
	FILE *out = open_memstream(&shown, &size);

	assert_non_null(out);
	assert_null(compile("d * (1 + 0.5) > f && (int)e", out, &form, &type));
	kymo_form_dump(&form, NULL, out);
	fclose(out);
	assert_string_equal(shown, "  &&: int\n"
				   "    >: int\n"
				   "      *: double\n"
				   "        d: double\n"
				   "        1.5: double\n"
				   "      f: float\n"
				   "    cast: int\n"
				   "      e: double\n"
				   "   0  vector 2\n"
				   "   1  extend u32\n"
				   "   2  resize-float 64\n"
				   "   3  vector 0\n"
				   "   4  value 4609434218613702656\n"
				   "   5  float-multiply 64\n"
				   "   6  float-less 64\n"
				   "   7  jump-if-zero 13\n"
				   "   8  vector 1\n"
				   "   9  from-float signed 64\n"
				   "  10  extend s32\n"
				   "  11  truth\n"
				   "  12  jump 14\n"
				   "  13  value 0\n");
}

static void what_is_wrong_is_marked(void **state)
{
	static const char is_whole[] =
		"' is for whole numbers, and this has a floating-point number; convert it: (long)x\n";
	char message[256];

	snprintf(message, sizeof(message), "column 3: '%%%s  d %% 2\n    ^", is_whole);
	refused("d % 2", message);
	snprintf(message, sizeof(message), "column 3: '<<%s  1 << d\n    ^", is_whole);
	refused("1 << d", message);
	snprintf(message, sizeof(message), "column 1: '~%s  ~f\n  ^", is_whole);
	refused("~f", message);
	refused("p[d]",
		"column 3: this is a 'double', and a whole number is expected; convert it: (long)x\n  p[d]\n    ^");
	refused("p + 1.5",
		"column 3: '+' is for numbers, and this has a pointer; convert it: (long)p\n  p + 1.5\n    ^");
	refused("p > d", "column 3: '>' is for numbers, and this has a pointer; convert it: (long)p\n  p > d\n    ^");
	refused("(double)p", "column 1: a pointer does not become a floating-point number; convert it first: (long)p\n"
			     "  (double)p\n  ^");
	refused("ld + 1",
		"column 1: this is a 'long double', which is not supported; float and double are\n  ld + 1\n  ^");
	refused("2.5K", "column 4: no suffix 'K' of a floating-point number; there is f\n  2.5K\n     ^");
	refused("1.2.3", "column 4: no suffix '.3' of a floating-point number; there is f\n  1.2.3\n     ^");
	refused("1e400", "column 1: a double does not have this\n  1e400\n  ^");
	refused("1e40f", "column 1: a float does not have this\n  1e40f\n  ^");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_those_of_c),
		cmocka_unit_test(what_no_integer_has_is_the_least_one),
		cmocka_unit_test(constants_are_folded),
		cmocka_unit_test(what_is_wrong_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
