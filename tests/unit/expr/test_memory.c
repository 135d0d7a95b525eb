/* Expressions of types of the source: beside what the compiler of this test makes of the same words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/caret.h"
#include "compiling.h"

/* ---- a program ------------------------------------------------------------------------------- */

typedef unsigned char u8;
typedef int s32;

enum state { IDLE, BUSY = 5, GONE = -1 };

struct point {
	short x, y;
};

struct conn {
	int fd;
	char name[8];
	struct conn *peer;
	unsigned int flags : 3;
	int delta : 5;
	union {
		long l;
		int i;
	} u;
	enum state state;
	_Bool is_open;
	double load;
	const char *title;
	short ports[4];
	int table[2][3];
	struct point at;
	int *counts;
};

static int numbers[3] = { 70, 80, 90 };
static struct conn other = { .fd = 9, .name = "other", .title = "the other", .delta = 7 };
static struct conn o = {
	.fd = 7,
	.name = "eight888",
	.peer = &other,
	.flags = 6,
	.delta = -9,
	.u.l = -5000000000,
	.state = BUSY,
	.is_open = 1,
	.load = 0.5,
	.title = "title",
	.ports = { 80, 443, -1, 8080 },
	.table = { { 1, 2, 3 }, { 4, 5, 6 } },
	.at = { 10, -20 },
	.counts = numbers,
};
static struct conn *p = &o, **pp = &p;
static void *q = &o;
static char *s = o.name;
static int i = 2, i2 = 3, x1y2 = 4;
static struct point small = { 300, -7 };

/* ---- what debug information would say of it -------------------------------------------------- */

#define INTEGER(text, bytes, has_sign) \
	{ \
		.kind = KYMO_CTYPE_INTEGER, .name = (text), .size = (bytes), .is_signed = (has_sign) \
	}
#define POINTER(text, target) \
	{ \
		.kind = KYMO_CTYPE_POINTER, .name = (text), .size = 8, .of = (target) \
	}
#define ARRAY(text, element, count, bytes) \
	{ \
		.kind = KYMO_CTYPE_ARRAY, .name = (text), .size = (bytes), .of = (element), .n = (count) \
	}
#define STRUCT(text, bytes) \
	{ \
		.kind = KYMO_CTYPE_STRUCT, .name = (text), .size = (bytes) \
	}

static const struct kymo_ctype t_char = { .kind = KYMO_CTYPE_CHARACTER, .name = "char", .size = 1, .is_signed = true },
			       t_short = INTEGER("short", 2, true), t_int = INTEGER("int", 4, true),
			       t_unsigned = INTEGER("unsigned int", 4, false), t_long = INTEGER("long", 8, true),
			       t_bool = { .kind = KYMO_CTYPE_BOOLEAN, .name = "_Bool", .size = 1 },
			       t_double = { .kind = KYMO_CTYPE_FLOAT, .name = "double", .size = 8 },
			       t_state = { .kind = KYMO_CTYPE_ENUM,
					   .name = "enum state",
					   .size = 4,
					   .is_signed = true },
			       t_chars = ARRAY("char[8]", &t_char, 8, 8), t_shorts = ARRAY("short[4]", &t_short, 4, 0),
			       t_row = ARRAY("int[3]", &t_int, 3, 12), t_table = ARRAY("int[2][3]", &t_row, 2, 24),
			       t_point = STRUCT("struct point", sizeof(struct point)),
			       t_union = { .kind = KYMO_CTYPE_UNION, .name = "union u", .size = 8 },
			       t_conn = STRUCT("struct conn", sizeof(struct conn)),
			       t_hidden = STRUCT("struct hidden", 0), t_conn_p = POINTER("struct conn *", &t_conn),
			       t_conn_pp = POINTER("struct conn **", &t_conn_p),
			       t_hidden_p = POINTER("struct hidden *", &t_hidden), t_void_p = POINTER("void *", NULL),
			       t_char_p = POINTER("char *", &t_char), t_int_p = POINTER("int *", &t_int),
			       t_conn_r = POINTER("conn &", &t_conn), t_conn_rust = POINTER("&net::Conn", &t_conn),
			       t_conn_box = POINTER("alloc::boxed::Box<net::Conn>", &t_conn);

#define MEMBER(of, what, its_type) \
	{ \
		.name = #what, .type = (its_type), .offset = offsetof(struct of, what) \
	}

static const struct kymo_ctype_member conn_members[] = {
	MEMBER(conn, fd, &t_int),
	MEMBER(conn, name, &t_chars),
	MEMBER(conn, peer, &t_conn_p),
	{ .name = "flags", .type = &t_unsigned, .offset = offsetof(struct conn, peer) + 8, .bit_size = 3 },
	{ .name = "delta", .type = &t_int, .offset = offsetof(struct conn, peer) + 8, .bit_size = 5, .bit_shift = 3 },
	MEMBER(conn, u, &t_union),
	MEMBER(conn, state, &t_state),
	MEMBER(conn, is_open, &t_bool),
	MEMBER(conn, load, &t_double),
	MEMBER(conn, title, &t_char_p),
	MEMBER(conn, ports, &t_shorts),
	MEMBER(conn, table, &t_table),
	MEMBER(conn, at, &t_point),
	MEMBER(conn, counts, &t_int_p),
};
static const struct kymo_ctype_member point_members[] = { MEMBER(point, x, &t_short), MEMBER(point, y, &t_short) };
static const struct kymo_ctype_member union_members[] = { { .name = "l", .type = &t_long },
							  { .name = "i", .type = &t_int } };
static const struct kymo_ctype_enumerator states[] = { { "IDLE", 0 }, { "BUSY", 5 }, { "GONE", -1 } };

static const struct {
	const char *name;
	const struct kymo_ctype *type;
	const void *address; /* NULL: in register `number` */
	int number;
} variables[] = {
	{ "o", &t_conn, &o, 0 },         { "p", &t_conn_p, NULL, 0 },
	{ "pp", &t_conn_pp, &pp, 0 },    { "q", &t_void_p, &q, 0 },
	{ "s", &t_char_p, &s, 0 },       { "i", &t_int, NULL, 1 },
	{ "small", &t_point, NULL, 2 },  { "r", &t_conn_r, NULL, 0 },
	{ "rr", &t_conn_r, &p, 0 },      { "hidden", &t_hidden_p, NULL, 0 },
	{ "i2", &t_int, &i2, 0 },        { "x1y2", &t_int, &x1y2, 0 },
	{ "rust", &t_conn_rust, &p, 0 }, { "box", &t_conn_box, NULL, 0 },
};

static struct kymo_error *find(void *data, const char *text, const char *name, size_t size,
			       struct kymo_expr_meaning *ret)
{
	if (size == 4 && !memcmp(name, "arg0", 4)) {
		ret->form = (struct kymo_form){ .n = 1, .ops[0] = { .code = KYMO_FORM_REGISTER } };
		ret->type = (struct kymo_expr_type){ .size = 8, .is_signed = true };
		return NULL;
	}
	if (size == 4 && !memcmp(name, "comm", 4)) {
		ret->form = (struct kymo_form){ .n = 1, .ops[0] = { .code = KYMO_FORM_ASK, .value = KYMO_FORM_NAME } };
		ret->type = (struct kymo_expr_type){ .size = 8, .is_string = true, .n = KYMO_FORM_NAME_SIZE };
		return NULL;
	}
	for (size_t k = 0; k < kymo_countof(variables); k++) {
		if (strlen(variables[k].name) != size || memcmp(variables[k].name, name, size) != 0)
			continue;
		ret->form.n = 1;
		ret->is_address = variables[k].address;
		ret->type = kymo_expr_type_of(variables[k].type);
		if (ret->is_address)
			ret->form.ops[0] = (struct kymo_form_op){ .code = KYMO_FORM_VALUE,
								  .value = (int64_t)variables[k].address };
		else
			ret->form.ops[0] =
				(struct kymo_form_op){ .code = KYMO_FORM_REGISTER, .value = variables[k].number };
		return NULL;
	}
	return kymo_error_at(text, name, "there is no %.*s", (int)size, name);
}

static struct kymo_error *find_type(void *data, const char *name, size_t size, const struct kymo_ctype **ret)
{
	static const struct kymo_ctype *const all[] = { &t_conn, &t_point, &t_state, &t_hidden };

	for (size_t k = 0; k < kymo_countof(all); k++)
		if (strlen(all[k]->name) == size && !memcmp(all[k]->name, name, size))
			*ret = all[k];
	if (size == 6 && !memcmp(name, "conn_t", 6))
		*ret = &t_conn;
	return NULL;
}

static struct kymo_error *find_members(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				       size_t *n_ret)
{
	if (type == &t_conn) {
		*ret = conn_members;
		*n_ret = kymo_countof(conn_members);
	} else if (type == &t_point) {
		*ret = point_members;
		*n_ret = kymo_countof(point_members);
	} else if (type == &t_union) {
		*ret = union_members;
		*n_ret = kymo_countof(union_members);
	}
	return NULL;
}

static struct kymo_error *find_enumerators(void *data, const struct kymo_ctype *type,
					   const struct kymo_ctype_enumerator **ret, size_t *n_ret)
{
	*ret = states;
	*n_ret = kymo_countof(states);
	return NULL;
}

static struct kymo_error *find_enumerator(void *data, const char *text, const char *name, size_t size,
					  const struct kymo_ctype **type_ret, int64_t *value_ret)
{
	if (size == 10 && !memcmp(name, "state::LOW", 10)) {
		*type_ret = &t_state;
		*value_ret = -7;
	}
	for (size_t k = 0; k < kymo_countof(states); k++)
		if (strlen(states[k].name) == size && !memcmp(states[k].name, name, size)) {
			*type_ret = &t_state;
			*value_ret = states[k].value;
		}
	return size == 4 && !memcmp(name, "BOTH", 4) ? kymo_error_at(text, name, "several have it") : NULL;
}

static const struct kymo_expr_names names = {
	find, find_type, NULL, find_members, NULL, find_enumerators, find_enumerator, NULL, NULL
};

/* ---- what is made of it ---------------------------------------------------------------------- */

static bool load(void *data, uint64_t address, unsigned int size, uint64_t *ret)
{
	*ret = 0;
	memcpy(ret, (const void *)address, size);
	return true;
}

static char its_name[KYMO_FORM_NAME_SIZE];

/* A name that is asked for again without having been asked for is seen. */
static bool ask(void *data, enum kymo_form_question question, uint64_t *ret)
{
	unsigned int *asked = data;

	assert_int_equal(question, *asked ? KYMO_FORM_NAME_AGAIN : KYMO_FORM_NAME);
	++*asked;
	*ret = (uint64_t)its_name;
	return true;
}

static void is(const char *text, const char *type_name, int64_t expected)
{
	unsigned int asked = 0;
	uint64_t registers[16] = { (uint64_t)p, 0xffffffff00000000 | (uint32_t)i }, value = 0;
	const struct kymo_form_input input = { .registers = registers, .load = load, .ask = ask, .data = &asked };
	char name[KYMO_EXPR_TYPE_NAME_MAX];
	struct kymo_expr_type type;
	struct kymo_error *error;
	struct kymo_form form;

	memcpy(&registers[2], &small, sizeof(small));
	error = compile(text, NULL, &form, &type);
	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_true(kymo_form_check(&form, 16, 255));
	assert_true(kymo_form_run(&form, &input, &value));
	assert_string_equal(kymo_expr_type_name(type, name), type_name);
	if ((int64_t)value != expected)
		fail_msg("%s is %lld, not %lld", text, (long long)value, (long long)expected);
}

/* The same words mean the same here. */
#define same(type_name, ...) is(#__VA_ARGS__, type_name, (int64_t)(__VA_ARGS__))

/* ---- tests ----------------------------------------------------------------------------------- */

static void members_are_read(void **state)
{
	same("int", o.fd);
	same("int", p->fd);
	same("int", (*p).fd);
	same("int", (&o)->fd);
	same("int", p->peer->fd);
	same("int", (*pp)->peer->fd);
	same("int", pp[0]->peer[0].fd);
	same("long", p->u.l);
	same("int", p->u.i);
	same("_Bool", p->is_open);
	same("short", o.at.y);
	same("int", ((struct conn *)q)->fd);
	is("((conn_t *)q)->fd", "int", 7);
	is("((const struct conn *const *)pp)[0]->fd", "int", 7);
	same("struct conn *", p->peer);
	same("struct conn **", &p->peer);
	same("int *", &p->fd);
	is("r.fd", "int", 7);
	is("rr.peer->fd", "int", 9);
	is("&rr", "struct conn *", (int64_t)p);
	is("rust.fd + rust->fd", "int", 14);
	is("box.peer->fd", "int", 9);
	same("int", x1y2 * i2 - i); /* a digit is the second character */
	same("int", p->ports[i2] + i2);
	is("small.x", "short", 300);
	is("small.y", "short", -7);
}

static void bit_fields_are_read(void **state)
{
	same("unsigned int", p->flags);
	same("int", p->delta);
	same("int", o.peer->delta);
	same("int", p->flags - 7 < 0); /* three bits are promoted to int */
	same("int", p->delta == -9);
	is("o.flags + o.delta", "int", -3);
}

static void elements_are_read(void **state)
{
	same("short", p->ports[2]);
	same("short", o.ports[i]);
	same("short", *o.ports);
	same("short", *(o.ports + 1));
	same("int", o.table[1][2]);
	same("int", o.table[i - 1][i]);
	same("int", p->counts[1]);
	same("int", *p->counts);
	same("char", s[3]);
	same("char", *s);
	same("char", p->name[7]);
	same("int", ((int *)q)[0]);
	same("unsigned char", *(u8 *)q);
	same("int", *(s32 *)((char *)p + 0));
}

static void pointers_are_computed_with(void **state)
{
	same("long", &p->counts[2] - p->counts);
	same("int *", p->counts + i);
	same("int *", i + p->counts);
	same("int *", p->counts - 1);
	same("struct conn *", p + 1);
	same("int", p == p->peer);
	same("int", p != p->peer);
	same("int", p->peer < p);
	same("int", q == p);
	same("int", p->peer->peer == 0);
	same("int", !p);
	same("int", p && p->peer);
	same("int", (i > 1 ? p : p->peer)->fd);
	same("int", (i > 2 ? p : p->peer)->fd);
	same("long", (long)q & 7);
	is("(char *)q + 1", "signed char *", (int64_t)q + 1);
	is("q + 1", "void *", (int64_t)q + 1);
	is("sizeof(struct conn)", "unsigned long", sizeof(struct conn));
	is("sizeof(struct conn *)", "unsigned long", 8);
	same("unsigned long", sizeof(o));
	same("unsigned long", sizeof(p->name));
	same("unsigned long", sizeof(p->ports));
	same("unsigned long", sizeof(*p));
	is("sizeof(conn_t)", "unsigned long", sizeof(struct conn));
	is("-(i) != 1", "int", 1);
	is("(i) -1", "int", 1);
	is("(bool)i", "bool", 1);
	is("(_Bool)0x100", "bool", 1);
}

static void enumerators_are_known_by_what_they_meet(void **state)
{
	same("int", p->state == BUSY);
	same("int", BUSY == p->state);
	same("int", p->state != GONE);
	same("int", p->state > IDLE);
	is("p->state", "enum state", BUSY);
	refused("p->state == BUSSY",
		"column 13: there is no 'BUSSY', and enum state has none of that name; it has: BUSY, IDLE, "
		"GONE\n  p->state == BUSSY\n              ^");
	is("i == BUSY - 3", "int", 1);
	is("BUSY", "enum state", 5);
	is("p->ports[IDLE + 1]", "short", 443);
	is("i > 1 ? GONE : BUSY", "int", -1);
	is("p->state == state::LOW", "int", 0);
	is("state::LOW", "enum state", -7);
	refused("i == BUSSY", "column 6: there is no BUSSY\n  i == BUSSY\n       ^");
	refused("i == BOTH", "column 6: several have it\n  i == BOTH\n       ^");
	refused("BUSSY", "column 1: there is no BUSSY\n  BUSSY\n  ^");
	refused("BUSSY->fd", "column 1: there is no BUSSY\n  BUSSY->fd\n  ^");
}

static void words_of_languages_are_constants(void **state)
{
	is("p == NULL", "int", 0);
	is("p->peer->peer == nullptr && q != nil", "int", 1);
	is("p->is_open == true && !false", "int", 1);
	is("NULL", "void *", 0);
}

static void wholes_are_their_addresses(void **state)
{
	is("o", "struct conn", (int64_t)&o);
	is("*p->peer", "struct conn", (int64_t)&other);
	is("o.at", "struct point", (int64_t)&o.at);
	is("p->ports", "short[4]", (int64_t)o.ports);
	is("p->counts[1..2]", "int[2]", (int64_t)&numbers[1]);
	is("p->name[0..3]", "char[4]", (int64_t)o.name);
	is("str(p->title)", "text", (int64_t)o.title);
	is("str(arg0 + 4, 3)", "text", (int64_t)o.name);
	is("str(p->name)", "text", (int64_t)o.name);
	is("buf(p, 16)", "unsigned char[16]", (int64_t)p);
}

static void texts_are_compared(void **state)
{
	is("str(p->title) == \"title\"", "int", 1);
	is("str(p->title) == \"titles\"", "int", 0);
	is("str(p->title) == \"titl\"", "int", 0);
	is("str(p->title) != \"title\"", "int", 0);
	is("\"the other\" == str(p->peer->title)", "int", 1);
	is("str(p->peer->title) == \"the otter\"", "int", 0);
	is("str(p->title) == \"\"", "int", 0);
	is("str(p->title, 3) == \"title\"", "int", 1);
	is("str(p->title) == \"\\x74itle\" && i == 2", "int", 1);
	is("str(p->name) == \"eight888\"", "int", 1); /* without a NUL in its array */
}

static void names_of_threads_are_compared(void **state)
{
	strcpy(its_name, "fifteen-letters");
	is("comm", "text", (int64_t)its_name);
	is("comm == \"fifteen-letters\"", "int", 1);
	is("comm == \"fifteen-letterss\"", "int", 0);
	is("comm == \"fifteen-letters-and-more-of-them\"", "int", 0);
	is("comm == \"fifteen-letter\"", "int", 0);
	is("comm != \"fifteen\" && i == 2", "int", 1);
	is("\"\" == comm", "int", 0);
	refused("comm + 1", "column 1: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
			    "  comm + 1\n  ^");
	refused("comm == i", "column 1: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
			     "  comm == i\n  ^");
	refused("comm[0]", "column 5: '[]' is for pointers, and this is a 'text'; convert it, as in (int *)arg0\n"
			   "  comm[0]\n      ^");
}

static void forms_are_shown(void **state)
{
	becomes("comm == \"worker-2\"", "  ==: int\n"
					"    str: text\n"
					"      comm: unsigned long\n"
					"    \"...\": text\n"
					"   0  ask name\n"
					"   1  load 64\n"
					"   2  value 3615671855768301431\n"
					"   3  equal\n"
					"   4  jump-if-zero 12\n"
					"   5  ask name again\n"
					"   6  value 8\n"
					"   7  add\n"
					"   8  load 8\n"
					"   9  value 0\n"
					"  10  equal\n"
					"  11  jump 13\n"
					"  12  value 0\n");
	becomes("p->peer->ports[i] < 0", "  <: int\n"
					 "    []: short\n"
					 "      ->ports: short[4]\n"
					 "        ->peer: struct conn *\n"
					 "          p: struct conn *\n"
					 "      i: int\n"
					 "    0: int\n"
					 "   0  register 0\n"
					 "   1  value 16\n"
					 "   2  add\n"
					 "   3  load 64\n"
					 "   4  value 64\n"
					 "   5  add\n"
					 "   6  register 1\n"
					 "   7  extend s32\n"
					 "   8  value 2\n"
					 "   9  multiply\n"
					 "  10  add\n"
					 "  11  load 16\n"
					 "  12  extend s16\n"
					 "  13  value 0\n"
					 "  14  less signed\n");
	becomes("p->delta", "  ->delta: int:5\n"
			    "    p: struct conn *\n"
			    "   0  register 0\n"
			    "   1  value 24\n"
			    "   2  add\n"
			    "   3  load 32\n"
			    "   4  extend s32\n"
			    "   5  value 56\n"
			    "   6  shift-left\n"
			    "   7  value 59\n"
			    "   8  shift-right signed\n");
}

static void what_is_wrong_is_marked(void **state)
{
	refused("p->piir",
		"column 4: 'struct conn' has no member 'piir'; it has: peer, fd, name, flags, delta, u, state, "
		"is_open, load, title, …\n  p->piir\n     ^");
	refused("hidden->x", "column 9: 'struct hidden' has no member 'x': the debug information describes none of its "
			     "members\n  hidden->x\n          ^");
	refused("p.fd", "column 2: this is a 'struct conn *': write '->' in place of '.'\n  p.fd\n   ^");
	refused("o->fd", "column 2: this is a 'struct conn': write '.' in place of '->'\n  o->fd\n   ^");
	refused("i->fd",
		"column 2: '->' is for structures and unions, and this is a 'int'; convert it, as in ((struct conn "
		"*)arg0)->fd\n  i->fd\n   ^");
	refused("*i", "column 1: '*' is for pointers, and this is a 'int'; convert it, as in (int *)arg0\n  *i\n  ^");
	refused("i[0]",
		"column 2: '[]' is for pointers, and this is a 'int'; convert it, as in (int *)arg0\n  i[0]\n   ^");
	refused("*q",
		"column 1: this has no value: its type is void; convert the pointer, as in *(long *)p\n  *q\n  ^");
	refused("o + 1", "column 1: this is a whole 'struct conn'; write one of its members\n  o + 1\n  ^");
	refused("p->ports[p->load]",
		"column 11: this is a 'double', and a whole number is expected; convert it: (long)x\n"
		"  p->ports[p->load]\n            ^");
	refused("p * 2", "column 3: '*' is for numbers, and this has a pointer; convert it: (long)p\n  p * 2\n    ^");
	refused("p + p", "column 3: a pointer is added to a number, not to a pointer\n  p + p\n    ^");
	refused("1 - p", "column 3: a pointer is not taken from a number\n  1 - p\n    ^");
	refused("hidden + 1", "column 8: the size of what the pointer points to is not known; convert it: (char *)p\n"
			      "  hidden + 1\n         ^");
	refused("&i", "column 1: this has no address: it is a value, or in a register\n  &i\n  ^");
	refused("&p->flags", "column 1: this has no address: it is a bit-field\n  &p->flags\n  ^");
	refused("(struct conn)arg0",
		"column 1: nothing can be converted to 'struct conn'; write a pointer to it, as in "
		"(struct conn *)arg0\n  (struct conn)arg0\n  ^");
	refused("(struct com *)arg0", "column 2: there is no type 'struct com' in the debug information; "
				      "--types FILE reads those of FILE, too\n  (struct com *)arg0\n   ^");
	refused("p->", "column 4: expected the name of a member after '->'\n  p->\n     ^");
	refused("s[1", "column 4: expected ']' or an operator\n  s[1\n     ^");
	refused("s[i..3]", "column 3: expected a number, such as 0: the size of a record is fixed\n  s[i..3]\n    ^");
	refused("s[3..1]", "column 2: expected the first element and the last, as in [0..7]\n  s[3..1]\n   ^");
	refused("s[1..x]", "column 6: there is no x\n  s[1..x]\n       ^");
	refused("s[1..]", "column 2: a NULL ends an array of pointers, and no other: write both numbers, as in [0..7]\n"
			  "  s[1..]\n   ^");
	refused("s[..7]", "column 2: a NULL ends an array of pointers, and no other: write both numbers, as in [0..7]\n"
			  "  s[..7]\n   ^");
	refused("str(s", "column 6: expected ')' or an operator\n  str(s\n       ^");
	refused("buf(s)", "column 6: expected ',' and a number of bytes, as in buf(arg0, 64)\n  buf(s)\n       ^");
	refused("str(s) + 1", "column 1: a text is recorded, or compared with another: str(arg0) == \"text\"\n"
			      "  str(s) + 1\n  ^");
	refused("str(s) < \"a\"", "column 8: a text is compared with one in memory by == or !=, as in str(arg0) == "
				  "\"text\"\n  str(s) < \"a\"\n         ^");
	refused("s == \"a\"",
		"column 3: a text is compared with one in memory by == or !=, as in str(arg0) == \"text\"\n"
		"  s == \"a\"\n    ^");
	refused("str(s) == \"a", "column 11: expected '\"' at the end of the text\n  str(s) == \"a\n            ^");
	refused("\"a\"", "column 1: a text alone says nothing; compare it, as in str(arg0) == \"text\"\n  \"a\"\n  ^");
	refused("p->fd / (1 - 1)", "column 7: this is a division by zero\n  p->fd / (1 - 1)\n        ^");
}

static void what_is_too_large_is_refused(void **state)
{
	char text[600] = "p";
	struct kymo_expr_type type;
	struct kymo_error *error;
	struct kymo_form form;

	for (int k = 0; k <= KYMO_FORM_FAULTS_MAX; k++)
		strcat(text, "->peer");
	error = compile(text, NULL, &form, &type);
	assert_non_null(error);
	assert_non_null(
		strstr(error->message, "column 1: the expression has more than 20 divisions and reads of memory"));
	kymo_error_destroy(error);
	*text = '\0';
	for (int k = 0; k < 120; k++)
		strcat(text, "*");
	strcat(text, "p");
	error = compile(text, NULL, &form, &type);
	assert_non_null(error);
	assert_non_null(strstr(error->message, "too many brackets and signs within each other"));
	kymo_error_destroy(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_read),
		cmocka_unit_test(bit_fields_are_read),
		cmocka_unit_test(elements_are_read),
		cmocka_unit_test(pointers_are_computed_with),
		cmocka_unit_test(enumerators_are_known_by_what_they_meet),
		cmocka_unit_test(words_of_languages_are_constants),
		cmocka_unit_test(wholes_are_their_addresses),
		cmocka_unit_test(texts_are_compared),
		cmocka_unit_test(names_of_threads_are_compared),
		cmocka_unit_test(forms_are_shown),
		cmocka_unit_test(what_is_wrong_is_marked),
		cmocka_unit_test(what_is_too_large_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
