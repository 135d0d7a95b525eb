#include "sym/names.h"

#include <string.h>

#include "base/cleanup.h"
#include "sym/demangle.h"

#define NEST_MAX 64

static bool begins(const char *at, const char *end, const char *with)
{
	const size_t n = strlen(with);

	return (size_t)(end - at) >= n && !memcmp(at, with, n);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The longest first. */
static const char *skip_symbol(const char *at, const char *end)
{
	static const char *const symbols[] = {
		"<=>", "->*", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=",
		"&&",  "||",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "+",
		"-",   "*",   "/",   "%",   "^",  "&",  "|",  "~",  "!",  "=",  "<",  ">",  ",",
	};

	for (size_t i = 0; i < kymo_countof(symbols); i++)
		if (begins(at, end, symbols[i]))
			return at + strlen(symbols[i]);
	return at;
}

/* Template arguments of such a type; nothing within them is looked at, so that the time does not grow with how they
 * nest. */
static const char *skip_angles(const char *at, const char *end)
{
	const char *begin = at;
	size_t depth = 0;

	for (; at < end; at++) {
		depth += *at == '<';
		if (*at == '>' && at[-1] != '-' && !--depth)
			return at + 1;
	}
	return begin;
}

/* The type that is converted to, or "new", "delete[]": words, but for one that is given a value. */
static const char *skip_type(const char *at, const char *end)
{
	for (;;) {
		const char *word = at + (at < end && *at == ' '), *next = word;

		while (next < end && sym_is_name_char(*next))
			next++;
		if (next == word || (next < end && *next == '='))
			return at;
		for (at = next; at < end;) {
			const char *behind = *at == '<' ? skip_angles(at, end) : at;

			if (behind == at && (begins(at, end, "::") || begins(at, end, "[]")))
				behind = at + 2;
			else if (behind == at && (sym_is_name_char(*at) || *at == '*' || *at == '&'))
				behind = at + 1;
			if (behind == at)
				break;
			at = behind;
		}
		if (at == end || *at != ' ')
			return at;
	}
}

static const char *skip_operator(const char *start, const char *at, const char *end)
{
	const char *behind = at + strlen("operator");

	if (!begins(at, end, "operator") || (at > start && sym_is_name_char(at[-1])) ||
	    (behind < end && sym_is_name_char(*behind)))
		return at;
	return behind < end && *behind == ' ' ? skip_type(behind, end) : skip_symbol(behind, end);
}

/* ---- brackets -------------------------------------------------------------------------------- */

static char closing(char c)
{
	return c == '(' ? ')' : c == '<' ? '>' : c == '{' ? '}' : c == '[' ? ']' : '\0';
}

static bool begins_group(const char *at, const char *end)
{
	return *at == '(' || *at == '<' || *at == '{' || begins(at, end, "[abi:") || begins(at, end, "[clone ");
}

static const char *skip_group(const char *start, const char *at, const char *end)
{
	const char *begin = at;
	char open[NEST_MAX];
	size_t n = 0;

	while (at < end) {
		const char *behind = *at == 'o' ? skip_operator(start, at, end) : at;

		if (behind == at && *at == '-' && begins(at, end, "->"))
			behind = at + 2;
		if (behind > at) {
			at = behind;
			continue;
		}
		if (closing(*at)) {
			if (n == NEST_MAX)
				return begin;
			open[n++] = closing(*at);
		} else if (*at == open[n - 1] && !--n) {
			return at + 1;
		}
		at++;
	}
	return begin;
}

const char *kymo_name_skip(const char *start, const char *at, const char *end)
{
	if (at == end)
		return at;
	return begins_group(at, end) ? skip_group(start, at, end) : skip_operator(start, at, end);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Whether what lies after brackets can only stand after parameters. */
static bool is_rest(const char *at, const char *end)
{
	static const char *const words[] = { " const", " volatile", " &&", " &", " noexcept", " [clone " };

	while (at < end) {
		const char *before = at;

		for (size_t i = 0; i < kymo_countof(words) && at == before; i++)
			if (begins(at, end, words[i]))
				at += strlen(words[i]);
		if (at == before)
			return false;
		if (begins(before, end, " [clone "))
			at = kymo_name_skip(before, before + 1, end);
	}
	return true;
}

/* "vtable for X", "virtual thunk to X::f()": no type that is returned. */
static bool is_special(const char *text, const char *blank)
{
	return begins(blank, blank + strlen(blank), " for ") || begins(blank, blank + strlen(blank), " to ") ||
	       begins(text, blank, "typeinfo") || begins(text, blank, "guard");
}

void sym_parts_find(const char *text, struct sym_parts *ret)
{
	const char *end = text + strlen(text);
	struct sym_parts parts = { text, end, end };
	bool is_special_name = false;

	for (const char *at = text; at < end;) {
		const char *behind = kymo_name_skip(text, at, end);

		if (*at == '(' && behind > at && is_rest(behind, end)) {
			parts.parameters = at;
			parts.rest = behind;
			break;
		}
		if (*at == ' ' && is_rest(at, end)) {
			parts.parameters = parts.rest = at;
			break;
		}
		if (*at == ' ' && is_special(text, at))
			is_special_name = true;
		if (*at == ' ' && !is_special_name)
			parts.name = at + 1;
		at = behind > at ? behind : at + 1;
	}
	if (is_special_name)
		parts.name = text;
	*ret = parts;
}

size_t kymo_name_size(const char *name)
{
	struct sym_parts parts;

	sym_parts_find(name, &parts);
	return (size_t)(parts.parameters - name);
}
