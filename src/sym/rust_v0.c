/*
 * The newer mangling of Rust (RFC 2603). References lead back into the name, so that it may stand for a text that is
 * longer by any factor: steps are counted, as is their depth. Where a text is read that is not shown, the sink is set
 * aside.
 */
#include "sym/rust_v0.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "sym/rust.h"
#include "sym/rust_reader.h"

#define DEPTH_MAX 200
#define STEPS_MAX 20000
#define LIFETIMES_MAX 64

static bool read_path(struct rust_reader *r, bool is_value);
static bool read_type(struct rust_reader *r);
static bool read_const(struct rust_reader *r);

/* ---- references, lists, lifetimes ------------------------------------------------------------ */

static bool enter_reader(struct rust_reader *r)
{
	return ++r->depth < DEPTH_MAX && ++r->steps < STEPS_MAX && !(r->sink && r->sink->is_full);
}

/* "B" was taken. Nothing is read again that is not shown. */
static bool read_back(struct rust_reader *r, bool (*read)(struct rust_reader *r, bool is_value), bool is_value)
{
	const size_t tag = r->at - 1;
	size_t after;
	uint64_t to;
	bool done;

	if (!rust_read_base62(r, &to) || to >= tag)
		return false;
	if (!r->sink)
		return true;
	after = r->at;
	r->at = (size_t)to;
	done = read(r, is_value);
	r->at = after;
	return done;
}

static bool read_type_again(struct rust_reader *r, bool is_value)
{
	return read_type(r);
}

static bool read_const_again(struct rust_reader *r, bool is_value)
{
	return read_const(r);
}

/* By its distance from the innermost binder: 'a is the outermost. */
static bool put_lifetime(struct rust_reader *r, uint64_t index)
{
	char letter[] = "'a";
	uint64_t depth;

	if (!index) {
		rust_put(r, "'_");
		return true;
	}
	if (index > r->lifetimes)
		return false;
	depth = r->lifetimes - index;
	if (depth < 26) {
		letter[1] = (char)('a' + depth);
		rust_put(r, letter);
	} else {
		rust_put(r, "'_");
		rust_put_number(r, depth);
	}
	return true;
}

/* "for<'a, 'b> ", which the caller takes off the lifetimes again: `n_ret` of them. */
static bool read_binder(struct rust_reader *r, uint64_t *n_ret)
{
	if (!rust_read_optional(r, 'G', n_ret) || *n_ret > LIFETIMES_MAX)
		return false;
	if (!*n_ret)
		return true;
	rust_put(r, "for<");
	for (uint64_t i = 0; i < *n_ret; i++) {
		rust_put(r, i ? ", " : "");
		r->lifetimes++;
		if (!put_lifetime(r, 1))
			return false;
	}
	rust_put(r, "> ");
	return true;
}

static bool read_generic(struct rust_reader *r)
{
	uint64_t lifetime;

	if (rust_take(r, 'L'))
		return rust_read_base62(r, &lifetime) && put_lifetime(r, lifetime);
	return rust_take(r, 'K') ? read_const(r) : read_type(r);
}

/* Up to "E". */
static bool read_list(struct rust_reader *r, bool (*read)(struct rust_reader *r), const char *separator, size_t *n_ret)
{
	size_t n = 0;

	for (; !rust_take(r, 'E'); n++) {
		rust_put(r, n ? separator : "");
		if (!enter_reader(r) || !read(r))
			return false;
		r->depth--;
	}
	*n_ret = n;
	return true;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool read_nested(struct rust_reader *r, bool is_value)
{
	const char space = rust_peek(r);
	struct rust_identifier id;
	uint64_t number;

	if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z')))
		return false;
	r->at++;
	if (!read_path(r, is_value) || !rust_read_optional(r, 's', &number) || !rust_read_identifier(r, &id))
		return false;
	if (space >= 'a') {
		rust_put(r, id.n ? "::" : "");
		return rust_put_identifier(r, &id);
	}
	rust_put(r, space == 'C' ? "::{closure" : space == 'S' ? "::{shim" : (char[]){ ':', ':', '{', space, '\0' });
	rust_put(r, id.n ? ":" : "");
	if (!rust_put_identifier(r, &id))
		return false;
	rust_put(r, "#");
	rust_put_number(r, number);
	rust_put(r, "}");
	return true;
}

/* The path of an "impl", which is not shown. */
static bool skip_impl(struct rust_reader *r)
{
	struct sym_sink *sink = r->sink;
	uint64_t number;
	bool done;

	r->sink = NULL;
	done = rust_read_optional(r, 's', &number) && read_path(r, false);
	r->sink = sink;
	return done;
}

static bool read_qualified(struct rust_reader *r, bool has_impl, bool has_trait)
{
	if (has_impl && !skip_impl(r))
		return false;
	rust_put(r, "<");
	if (!read_type(r))
		return false;
	if (has_trait) {
		rust_put(r, " as ");
		if (!read_path(r, false))
			return false;
	}
	rust_put(r, ">");
	return true;
}

/* Without the last ">" where `is_open`. */
static bool read_generics(struct rust_reader *r, bool is_value, bool is_open)
{
	size_t n;

	if (!read_path(r, is_value))
		return false;
	rust_put(r, is_value ? "::<" : "<");
	if (!read_list(r, read_generic, ", ", &n))
		return false;
	rust_put(r, is_open ? "" : ">");
	return true;
}

static bool read_path_inner(struct rust_reader *r, bool is_value)
{
	struct rust_identifier id;
	uint64_t number;

	switch (r->at < r->n ? r->name[r->at++] : '\0') {
	case 'C':
		return rust_read_optional(r, 's', &number) && rust_read_identifier(r, &id) &&
		       rust_put_identifier(r, &id);
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

static bool read_path(struct rust_reader *r, bool is_value)
{
	const bool done = enter_reader(r) && read_path_inner(r, is_value);

	r->depth--;
	return done;
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *basic_type(char tag)
{
	static const char *const names['z' - 'a' + 1] = {
		"i8",   "bool", "char", "f64", "str", "f32", NULL,  "u8", "isize", "usize", NULL,  "i32", "u32",
		"i128", "u128", "_",    NULL,  NULL,  "i16", "u16", "()", "...",   NULL,    "i64", "u64", "!",
	};

	return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

/* The ABI of a function: "C", or an identifier with "_" for "-". */
static bool read_abi(struct rust_reader *r)
{
	struct rust_identifier id = { .text = "C", .n = 1 };
	char text[64];

	if (!rust_take(r, 'C') && (!rust_read_identifier(r, &id) || id.is_punycode || id.n >= sizeof(text)))
		return false;
	for (size_t i = 0; i < id.n; i++)
		text[i] = id.text[i] == '_' ? '-' : id.text[i];
	text[id.n] = '\0';
	rust_put(r, "extern \"");
	rust_put(r, text);
	rust_put(r, "\" ");
	return true;
}

static bool read_signature(struct rust_reader *r)
{
	size_t n;

	rust_put(r, rust_take(r, 'U') ? "unsafe " : "");
	if (rust_take(r, 'K') && !read_abi(r))
		return false;
	rust_put(r, "fn(");
	if (!read_list(r, read_type, ", ", &n))
		return false;
	rust_put(r, ")");
	if (rust_take(r, 'u'))
		return true;
	rust_put(r, " -> ");
	return read_type(r);
}

static bool read_function(struct rust_reader *r)
{
	uint64_t n = 0;
	const bool done = read_binder(r, &n) && read_signature(r);

	r->lifetimes -= done ? n : 0;
	return done;
}

/* A path whose generics stay open for what is bound after it: "Iterator<Item = u8>". */
static bool read_trait_path(struct rust_reader *r, bool *is_open_ret)
{
	if (rust_take(r, 'I')) {
		*is_open_ret = true;
		return read_generics(r, false, true);
	}
	*is_open_ret = false;
	return read_path(r, false);
}

static bool read_trait(struct rust_reader *r)
{
	struct rust_identifier id;
	bool is_open;

	if (!read_trait_path(r, &is_open))
		return false;
	for (; rust_take(r, 'p'); is_open = true) {
		rust_put(r, is_open ? ", " : "<");
		if (!rust_read_identifier(r, &id) || !rust_put_identifier(r, &id))
			return false;
		rust_put(r, " = ");
		if (!(rust_take(r, 'K') ? read_const(r) : read_type(r)))
			return false;
	}
	rust_put(r, is_open ? ">" : "");
	return true;
}

static bool read_dyn(struct rust_reader *r)
{
	uint64_t n = 0, lifetime;
	size_t n_traits;

	rust_put(r, "dyn ");
	if (!read_binder(r, &n) || !read_list(r, read_trait, " + ", &n_traits))
		return false;
	r->lifetimes -= n;
	if (!rust_take(r, 'L') || !rust_read_base62(r, &lifetime))
		return false;
	rust_put(r, lifetime ? " + " : "");
	return !lifetime || put_lifetime(r, lifetime);
}

static bool read_reference(struct rust_reader *r, const char *mutability)
{
	uint64_t lifetime;

	rust_put(r, "&");
	if (rust_take(r, 'L')) {
		if (!rust_read_base62(r, &lifetime) || (lifetime && !put_lifetime(r, lifetime)))
			return false;
		rust_put(r, lifetime ? " " : "");
	}
	rust_put(r, mutability);
	return read_type(r);
}

static bool read_array(struct rust_reader *r, bool has_size)
{
	rust_put(r, "[");
	if (!read_type(r))
		return false;
	rust_put(r, has_size ? "; " : "");
	if (has_size && !read_const(r))
		return false;
	rust_put(r, "]");
	return true;
}

static bool read_tuple(struct rust_reader *r)
{
	size_t n;

	rust_put(r, "(");
	if (!read_list(r, read_type, ", ", &n))
		return false;
	rust_put(r, n == 1 ? ",)" : ")");
	return true;
}

static bool read_type_inner(struct rust_reader *r)
{
	const char tag = rust_peek(r);

	if (basic_type(tag)) {
		rust_put(r, basic_type(tag));
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
		rust_put(r, "*const ");
		return read_type(r);
	case 'O':
		rust_put(r, "*mut ");
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

static bool read_type(struct rust_reader *r)
{
	const bool done = enter_reader(r) && read_type_inner(r);

	r->depth--;
	return done;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Hex digits up to "_". False where the number has more than 64 bits; its digits are then what `start` and `n` say. */
static bool read_hex(struct rust_reader *r, const char **start_ret, size_t *n_ret, uint64_t *ret)
{
	uint64_t value = 0;

	*start_ret = r->name + r->at;
	for (*n_ret = 0; kymo_hex_digit(rust_peek(r)) >= 0; r->at++, ++*n_ret)
		value = value << 4 | (uint64_t)kymo_hex_digit(rust_peek(r));
	*ret = value;
	return rust_take(r, '_');
}

static bool put_character(struct rust_reader *r, uint64_t c)
{
	rust_put(r, "'");
	if (c == '\'' || c == '\\')
		rust_put(r, "\\");
	if (r->sink && (c > UINT32_MAX || !sym_sink_character(r->sink, (uint32_t)c)))
		return false;
	rust_put(r, "'");
	return true;
}

static bool read_value(struct rust_reader *r, char type)
{
	const char *digits;
	uint64_t value;
	size_t n;

	if (strchr("aslxni", type))
		rust_put(r, rust_take(r, 'n') ? "-" : "");
	if (!read_hex(r, &digits, &n, &value))
		return false;
	if (type == 'b' && n == 1 && value < 2) {
		rust_put(r, value ? "true" : "false");
		return true;
	}
	if (type == 'b')
		return false;
	if (type == 'c')
		return n <= 8 && put_character(r, value);
	if (n <= 16) {
		rust_put_number(r, value);
		return true;
	}
	rust_put(r, "0x");
	if (r->sink)
		sym_sink_put(r->sink, digits, n);
	return true;
}

static bool read_const_inner(struct rust_reader *r)
{
	const char type = rust_peek(r);

	r->at += type != '\0';
	if (type == 'B')
		return read_back(r, read_const_again, false);
	if (type == 'p')
		rust_put(r, "_");
	return type == 'p' || (type && strchr("hmtyojaslxnibc", type) && read_value(r, type));
}

static bool read_const(struct rust_reader *r)
{
	const bool done = enter_reader(r) && read_const_inner(r);

	r->depth--;
	return done;
}

/* ---- the name -------------------------------------------------------------------------------- */

bool sym_rust_v0(const char *name, size_t n, struct sym_sink *sink)
{
	struct rust_reader r = { .name = name + 2, .n = n - 2, .sink = sink };

	if (n < 3 || name[0] != '_' || name[1] != 'R' || rust_is_digit(name[2]) || !read_path(&r, true))
		return false;
	/* The crate that a generic function was made for. */
	r.sink = NULL;
	if (r.at < r.n && !read_path(&r, false))
		return false;
	return r.at == r.n && !sink->is_full;
}
