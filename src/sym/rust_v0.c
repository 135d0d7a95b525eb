/*
 * The newer mangling of Rust (RFC 2603). References lead back into the name, so that it may stand for a text that is
 * longer by any factor: steps are counted, as is their depth. Where a text is read that is not shown, the sink is set
 * aside.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "sym/rust.h"

#define DEPTH_MAX 200
#define STEPS_MAX 20000
#define LIFETIMES_MAX 64

struct reader {
	const char *name; /* behind "_R": what references count from */
	size_t n, at;
	struct sym_sink *sink; /* NULL: nothing is shown */
	unsigned int depth, steps;
	uint64_t lifetimes; /* that are bound here */
};

static bool read_path(struct reader *r, bool is_value);
static bool read_type(struct reader *r);
static bool read_const(struct reader *r);

/* ---- letters and numbers ----------------------------------------------------------------------------------------- */

static void put(struct reader *r, const char *text)
{
	if (r->sink)
		sym_sink_put(r->sink, text, strlen(text));
}

static void put_number(struct reader *r, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put(r, text);
}

static char peek(const struct reader *r)
{
	return r->at < r->n ? r->name[r->at] : '\0';
}

static bool take(struct reader *r, char c)
{
	if (!c || peek(r) != c)
		return false;
	r->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "_" is 0, "0_" 1, "Z_" 62 */
static bool read_base62(struct reader *r, uint64_t *ret)
{
	uint64_t value = 0;

	if (take(r, '_')) {
		*ret = 0;
		return true;
	}
	while (!take(r, '_')) {
		const char c = peek(r);
		const int digit = is_digit(c)            ? c - '0'
				  : c >= 'a' && c <= 'z' ? c - 'a' + 10
				  : c >= 'A' && c <= 'Z' ? c - 'A' + 36
							 : -1;

		if (digit < 0 || __builtin_mul_overflow(value, UINT64_C(62), &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
		r->at++;
	}
	return !__builtin_add_overflow(value, UINT64_C(1), ret);
}

/* What `tag` begins, one more than its number; 0 where it is not there. */
static bool read_optional(struct reader *r, char tag, uint64_t *ret)
{
	*ret = 0;
	if (!take(r, tag))
		return true;
	return read_base62(r, ret) && !__builtin_add_overflow(*ret, UINT64_C(1), ret);
}

/* ---- identifiers ------------------------------------------------------------------------------------------------- */

struct identifier {
	const char *text;
	size_t n;
	bool is_punycode;
};

static bool read_identifier(struct reader *r, struct identifier *ret)
{
	struct identifier id = { .is_punycode = take(r, 'u') };

	if (!is_digit(peek(r)))
		return false;
	if (!take(r, '0'))
		for (; is_digit(peek(r)) && id.n <= r->n; r->at++)
			id.n = 10 * id.n + (size_t)(peek(r) - '0');
	take(r, '_');
	if (id.n > r->n - r->at)
		return false;
	id.text = r->name + r->at;
	r->at += id.n;
	*ret = id;
	return true;
}

static bool put_identifier(struct reader *r, const struct identifier *id)
{
	if (!r->sink)
		return true;
	if (id->is_punycode)
		return sym_put_punycode(id->text, id->n, r->sink);
	sym_sink_put(r->sink, id->text, id->n);
	return true;
}

/* ---- references, lists, lifetimes ------------------------------------------------------------------------------- */

static bool enter(struct reader *r)
{
	return ++r->depth < DEPTH_MAX && ++r->steps < STEPS_MAX && !(r->sink && r->sink->is_full);
}

/* "B" was taken. Nothing is read again that is not shown. */
static bool read_back(struct reader *r, bool (*read)(struct reader *r, bool is_value), bool is_value)
{
	const size_t tag = r->at - 1;
	size_t after;
	uint64_t to;
	bool done;

	if (!read_base62(r, &to) || to >= tag)
		return false;
	if (!r->sink)
		return true;
	after = r->at;
	r->at = (size_t)to;
	done = read(r, is_value);
	r->at = after;
	return done;
}

static bool read_type_again(struct reader *r, bool is_value)
{
	return read_type(r);
}

static bool read_const_again(struct reader *r, bool is_value)
{
	return read_const(r);
}

/* By its distance from the innermost binder: 'a is the outermost. */
static bool put_lifetime(struct reader *r, uint64_t index)
{
	char letter[] = "'a";
	uint64_t depth;

	if (!index) {
		put(r, "'_");
		return true;
	}
	if (index > r->lifetimes)
		return false;
	depth = r->lifetimes - index;
	if (depth < 26) {
		letter[1] = (char)('a' + depth);
		put(r, letter);
	} else {
		put(r, "'_");
		put_number(r, depth);
	}
	return true;
}

/* "for<'a, 'b> ", which the caller takes off the lifetimes again: `n_ret` of them. */
static bool read_binder(struct reader *r, uint64_t *n_ret)
{
	if (!read_optional(r, 'G', n_ret) || *n_ret > LIFETIMES_MAX)
		return false;
	if (!*n_ret)
		return true;
	put(r, "for<");
	for (uint64_t i = 0; i < *n_ret; i++) {
		put(r, i ? ", " : "");
		r->lifetimes++;
		if (!put_lifetime(r, 1))
			return false;
	}
	put(r, "> ");
	return true;
}

static bool read_generic(struct reader *r)
{
	uint64_t lifetime;

	if (take(r, 'L'))
		return read_base62(r, &lifetime) && put_lifetime(r, lifetime);
	return take(r, 'K') ? read_const(r) : read_type(r);
}

/* Up to "E". */
static bool read_list(struct reader *r, bool (*read)(struct reader *r), const char *separator, size_t *n_ret)
{
	size_t n = 0;

	for (; !take(r, 'E'); n++) {
		put(r, n ? separator : "");
		if (!enter(r) || !read(r))
			return false;
		r->depth--;
	}
	*n_ret = n;
	return true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------ */

static bool read_nested(struct reader *r, bool is_value)
{
	const char space = peek(r);
	struct identifier id;
	uint64_t number;

	if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z')))
		return false;
	r->at++;
	if (!read_path(r, is_value) || !read_optional(r, 's', &number) || !read_identifier(r, &id))
		return false;
	if (space >= 'a') {
		put(r, id.n ? "::" : "");
		return put_identifier(r, &id);
	}
	put(r, space == 'C' ? "::{closure" : space == 'S' ? "::{shim" : (char[]){ ':', ':', '{', space, '\0' });
	put(r, id.n ? ":" : "");
	if (!put_identifier(r, &id))
		return false;
	put(r, "#");
	put_number(r, number);
	put(r, "}");
	return true;
}

/* The path of an "impl", which is not shown. */
static bool skip_impl(struct reader *r)
{
	struct sym_sink *sink = r->sink;
	uint64_t number;
	bool done;

	r->sink = NULL;
	done = read_optional(r, 's', &number) && read_path(r, false);
	r->sink = sink;
	return done;
}

static bool read_qualified(struct reader *r, bool has_impl, bool has_trait)
{
	if (has_impl && !skip_impl(r))
		return false;
	put(r, "<");
	if (!read_type(r))
		return false;
	if (has_trait) {
		put(r, " as ");
		if (!read_path(r, false))
			return false;
	}
	put(r, ">");
	return true;
}

/* Without the last ">" where `is_open`. */
static bool read_generics(struct reader *r, bool is_value, bool is_open)
{
	size_t n;

	if (!read_path(r, is_value))
		return false;
	put(r, is_value ? "::<" : "<");
	if (!read_list(r, read_generic, ", ", &n))
		return false;
	put(r, is_open ? "" : ">");
	return true;
}

static bool read_path_inner(struct reader *r, bool is_value)
{
	struct identifier id;
	uint64_t number;

	switch (r->at < r->n ? r->name[r->at++] : '\0') {
	case 'C':
		return read_optional(r, 's', &number) && read_identifier(r, &id) && put_identifier(r, &id);
	case 'N':
		return read_nested(r, is_value);
	case 'M':
		return read_qualified(r, true, false);
	case 'X':
		return read_qualified(r, true, true);
	case 'Y':
		return read_qualified(r, false, true);
	case 'I':
		return read_generics(r, is_value, false);
	case 'B':
		return read_back(r, read_path, is_value);
	default:
		return false;
	}
}

static bool read_path(struct reader *r, bool is_value)
{
	const bool done = enter(r) && read_path_inner(r, is_value);

	r->depth--;
	return done;
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

static const char *basic_type(char tag)
{
	static const char *const names['z' - 'a' + 1] = {
		"i8",   "bool", "char", "f64", "str", "f32", NULL,  "u8", "isize", "usize", NULL,  "i32", "u32",
		"i128", "u128", "_",    NULL,  NULL,  "i16", "u16", "()", "...",   NULL,    "i64", "u64", "!",
	};

	return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

/* The ABI of a function: "C", or an identifier with "_" for "-". */
static bool read_abi(struct reader *r)
{
	struct identifier id = { .text = "C", .n = 1 };
	char text[64];

	if (!take(r, 'C') && (!read_identifier(r, &id) || id.is_punycode || id.n >= sizeof(text)))
		return false;
	for (size_t i = 0; i < id.n; i++)
		text[i] = id.text[i] == '_' ? '-' : id.text[i];
	text[id.n] = '\0';
	put(r, "extern \"");
	put(r, text);
	put(r, "\" ");
	return true;
}

static bool read_signature(struct reader *r)
{
	size_t n;

	put(r, take(r, 'U') ? "unsafe " : "");
	if (take(r, 'K') && !read_abi(r))
		return false;
	put(r, "fn(");
	if (!read_list(r, read_type, ", ", &n))
		return false;
	put(r, ")");
	if (take(r, 'u'))
		return true;
	put(r, " -> ");
	return read_type(r);
}

static bool read_function(struct reader *r)
{
	uint64_t n = 0;
	const bool done = read_binder(r, &n) && read_signature(r);

	r->lifetimes -= done ? n : 0;
	return done;
}

/* A path whose generics stay open for what is bound behind it: "Iterator<Item = u8>". */
static bool read_trait_path(struct reader *r, bool *is_open_ret)
{
	if (take(r, 'I')) {
		*is_open_ret = true;
		return read_generics(r, false, true);
	}
	*is_open_ret = false;
	return read_path(r, false);
}

static bool read_trait(struct reader *r)
{
	struct identifier id;
	bool is_open;

	if (!read_trait_path(r, &is_open))
		return false;
	for (; take(r, 'p'); is_open = true) {
		put(r, is_open ? ", " : "<");
		if (!read_identifier(r, &id) || !put_identifier(r, &id))
			return false;
		put(r, " = ");
		if (!(take(r, 'K') ? read_const(r) : read_type(r)))
			return false;
	}
	put(r, is_open ? ">" : "");
	return true;
}

static bool read_dyn(struct reader *r)
{
	uint64_t n = 0, lifetime;
	size_t n_traits;

	put(r, "dyn ");
	if (!read_binder(r, &n) || !read_list(r, read_trait, " + ", &n_traits))
		return false;
	r->lifetimes -= n;
	if (!take(r, 'L') || !read_base62(r, &lifetime))
		return false;
	put(r, lifetime ? " + " : "");
	return !lifetime || put_lifetime(r, lifetime);
}

static bool read_reference(struct reader *r, const char *mutability)
{
	uint64_t lifetime;

	put(r, "&");
	if (take(r, 'L')) {
		if (!read_base62(r, &lifetime) || (lifetime && !put_lifetime(r, lifetime)))
			return false;
		put(r, lifetime ? " " : "");
	}
	put(r, mutability);
	return read_type(r);
}

static bool read_array(struct reader *r, bool has_size)
{
	put(r, "[");
	if (!read_type(r))
		return false;
	put(r, has_size ? "; " : "");
	if (has_size && !read_const(r))
		return false;
	put(r, "]");
	return true;
}

static bool read_tuple(struct reader *r)
{
	size_t n;

	put(r, "(");
	if (!read_list(r, read_type, ", ", &n))
		return false;
	put(r, n == 1 ? ",)" : ")");
	return true;
}

static bool read_type_inner(struct reader *r)
{
	const char tag = peek(r);

	if (basic_type(tag)) {
		put(r, basic_type(tag));
		r->at++;
		return true;
	}
	r->at += tag != '\0';
	switch (tag) {
	case 'R':
		return read_reference(r, "");
	case 'Q':
		return read_reference(r, "mut ");
	case 'P':
		put(r, "*const ");
		return read_type(r);
	case 'O':
		put(r, "*mut ");
		return read_type(r);
	case 'A':
	case 'S':
		return read_array(r, tag == 'A');
	case 'T':
		return read_tuple(r);
	case 'F':
		return read_function(r);
	case 'D':
		return read_dyn(r);
	case 'B':
		return read_back(r, read_type_again, false);
	case '\0':
		return false;
	default:
		r->at--;
		return read_path(r, false);
	}
}

static bool read_type(struct reader *r)
{
	const bool done = enter(r) && read_type_inner(r);

	r->depth--;
	return done;
}

/* ---- constants -------------------------------------------------------------------------------------------------- */

/* Hex digits up to "_". False where the number has more than 64 bits; its digits are then what `start` and `n` say. */
static bool read_hex(struct reader *r, const char **start_ret, size_t *n_ret, uint64_t *ret)
{
	uint64_t value = 0;

	*start_ret = r->name + r->at;
	for (*n_ret = 0; kymo_hex_digit(peek(r)) >= 0; r->at++, ++*n_ret)
		value = value << 4 | (uint64_t)kymo_hex_digit(peek(r));
	*ret = value;
	return take(r, '_');
}

static bool put_character(struct reader *r, uint64_t c)
{
	put(r, "'");
	if (c == '\'' || c == '\\')
		put(r, "\\");
	if (r->sink && (c > UINT32_MAX || !sym_sink_character(r->sink, (uint32_t)c)))
		return false;
	put(r, "'");
	return true;
}

static bool read_value(struct reader *r, char type)
{
	const char *digits;
	uint64_t value;
	size_t n;

	if (strchr("aslxni", type))
		put(r, take(r, 'n') ? "-" : "");
	if (!read_hex(r, &digits, &n, &value))
		return false;
	if (type == 'b' && n == 1 && value < 2) {
		put(r, value ? "true" : "false");
		return true;
	}
	if (type == 'b')
		return false;
	if (type == 'c')
		return n <= 8 && put_character(r, value);
	if (n <= 16) {
		put_number(r, value);
		return true;
	}
	put(r, "0x");
	if (r->sink)
		sym_sink_put(r->sink, digits, n);
	return true;
}

static bool read_const_inner(struct reader *r)
{
	const char type = peek(r);

	r->at += type != '\0';
	if (type == 'B')
		return read_back(r, read_const_again, false);
	if (type == 'p')
		put(r, "_");
	return type == 'p' || (type && strchr("hmtyojaslxnibc", type) && read_value(r, type));
}

static bool read_const(struct reader *r)
{
	const bool done = enter(r) && read_const_inner(r);

	r->depth--;
	return done;
}

/* ---- the name --------------------------------------------------------------------------------------------------- */

bool sym_rust_v0(const char *name, size_t n, struct sym_sink *sink)
{
	struct reader r = { .name = name + 2, .n = n - 2, .sink = sink };

	if (n < 3 || name[0] != '_' || name[1] != 'R' || is_digit(name[2]) || !read_path(&r, true))
		return false;
	/* The crate that a generic function was made for. */
	r.sink = NULL;
	if (r.at < r.n && !read_path(&r, false))
		return false;
	return r.at == r.n && !sink->is_full;
}
