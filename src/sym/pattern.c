/*
 * From names as users write them to functions. Both sides are compared without blanks that separate nothing, with one
 * spelling of std::string. Of a function the template arguments, ABI tags and anonymous namespaces that the user leaves
 * out are passed over.
 */
#include "sym/pattern.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/demangle.h"
#include "sym/glob.h"
#include "sym/names.h"

#define ANONYMOUS "(anonymous namespace)::"
#define NEEDLE_MAX 64
#define STRING "basic_string<char,std::char_traits<char>,std::allocator<char>>"

struct kymo_pattern {
	char *name;       /* without parameters */
	char *glob;       /* of the name as fnmatch() takes it, or NULL */
	char *parameters; /* "(int)", or NULL: any */
	char *parameters_glob;
	char *rest;              /* " const", "" where none is given */
	char needle[NEEDLE_MAX]; /* a word that each mangled name has; may be "" */
	char hash[17];           /* of Rust, which no demangled name has; or "" */
};

/* ---- one spelling ---------------------------------------------------------------------------- */

/* In place: each `from` in `text` becomes `to`, which is no longer. */
static void replace_in(char *text, const char *from, const char *to)
{
	const size_t n = strlen(from), m = strlen(to);

	for (char *at = text; (at = strstr(at, from)); at += m) {
		memcpy(at, to, m);
		memmove(at + m, at + n, strlen(at + n) + 1);
	}
}

static void spell(const char *from, const char *to, char *out)
{
	char *start = out;

	for (const char *at = from; at < to; at++)
		if (*at != ' ' || (at > from && at + 1 < to && sym_is_name_char(at[-1]) && sym_is_name_char(at[1])))
			*out++ = *at;
	*out = '\0';
	replace_in(start, "std::__cxx11::" STRING "const", "std::string const");
	replace_in(start, "std::__cxx11::" STRING, "std::string");
	replace_in(start, "std::" STRING "const", "std::string const");
	replace_in(start, "std::" STRING, "std::string");
}

static char *spell_new(const char *from, const char *to)
{
	char *out = malloc((size_t)(to - from) + 1);

	if (out)
		spell(from, to, out);
	return out;
}

/* The end of the type at `at`, before its "*" and "&": "unsigned long", "std::vector<int>". */
static char *type_end(char *at)
{
	char *end = at + strlen(at);

	while (at < end) {
		char *behind = *at == '<' ? (char *)kymo_name_skip(at, at, end) : at;

		if (behind == at && (sym_is_name_char(*at) || *at == ':' || *at == ' '))
			behind++;
		if (behind == at)
			break;
		at = behind;
	}
	return at;
}

/* "(const char*)" becomes "(char const*)", as demanglers have it, and "(void)" "()". In place. */
static void move_const(char *parameters)
{
	if (!strcmp(parameters, "(void)"))
		strcpy(parameters, "()");
	for (char *at = parameters; *at; at++) {
		char *end;

		if (!strchr("(,<", *at) || strncmp(at + 1, "const ", 6))
			continue;
		end = type_end(at + 7);
		memmove(at + 1, at + 7, (size_t)(end - (at + 7)));
		memcpy(end - 6, " const", 6);
		if (!sym_is_name_char(end[-7]))
			memmove(end - 6, end - 5, strlen(end - 5) + 1);
	}
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* Words that names may have without their mangled forms having them. Of a glob it may be a part of such a word. */
static bool is_abbreviated(const char *word, size_t n, bool is_part)
{
	static const char *const words[] = {
		"std",           "allocator",     "basic_string",   "string",      "istream", "ostream",  "iostream",
		"basic_istream", "basic_ostream", "basic_iostream", "char_traits", "const",   "volatile", "lambda",
		"unnamed",       "type",          "operator",       "closure",     "shim",    "vtable",   "thunk",
		"virtual",       "bool",          "char",           "short",       "int",     "long",     "unsigned",
		"signed",        "float",         "double",         "void",        "wchar_t",
	};

	for (size_t i = 0; i < kymo_countof(words); i++)
		if ((is_part || strlen(words[i]) == n) && memmem(words[i], strlen(words[i]), word, n))
			return true;
	return false;
}

/* The longest word of ASCII outside of brackets, sets and operators. */
static void find_needle(struct kymo_pattern *pattern)
{
	const char *text = pattern->name, *end = text + strlen(text);
	const bool is_glob = kymo_is_glob(text);
	size_t best = 0;

	for (const char *at = text; at < end;) {
		const char *behind = kymo_name_skip(text, at, end), *word = at;
		bool is_ascii = true;

		if (behind > at || !sym_is_name_char(*at)) {
			const char *close = behind == at && *at == '[' ? strchr(at, ']') : NULL;

			at = close ? close : behind > at ? behind : at + 1;
			continue;
		}
		for (; at < end && sym_is_name_char(*at) && kymo_name_skip(text, at, end) == at; at++)
			is_ascii &= (unsigned char)*at < 0x80;
		if (is_ascii && (size_t)(at - word) > best && at - word < NEEDLE_MAX &&
		    !is_abbreviated(word, (size_t)(at - word), is_glob)) {
			best = (size_t)(at - word);
			memcpy(pattern->needle, word, best);
			pattern->needle[best] = '\0';
		}
	}
}

static bool fill_pattern(struct kymo_pattern *pattern, const char *text)
{
	struct sym_parts parts;
	const char *end;

	sym_parts_find(text, &parts);
	end = text + strlen(text);
	pattern->name = spell_new(parts.name, parts.parameters);
	pattern->rest = spell_new(parts.rest, end);
	if (!pattern->name || !pattern->rest)
		return false;
	find_needle(pattern);
	if (kymo_is_glob(pattern->name) && !(pattern->glob = kymo_glob_create(pattern->name)))
		return false;
	if (parts.parameters == parts.rest)
		return true;
	pattern->parameters = spell_new(parts.parameters, parts.rest);
	if (!pattern->parameters)
		return false;
	move_const(pattern->parameters);
	return !kymo_is_glob(pattern->parameters) || (pattern->parameters_glob = kymo_glob_create(pattern->parameters));
}

/* "::h0123456789abcdef" at the end of [text, text + n). */
static bool has_hash(const char *text, size_t n)
{
	return n > 19 && !strncmp(text + n - 19, "::h", 3) && strspn(text + n - 16, "0123456789abcdef") == 16;
}

struct kymo_pattern *kymo_pattern_create(const char *text)
{
	struct kymo_pattern *pattern = calloc(1, sizeof(*pattern));
	kymo_cleanup_free char *name = NULL;

	while (!strncmp(text, "::", 2))
		text += 2;
	if (pattern && has_hash(text, strlen(text))) {
		name = strndup(text, strlen(text) - 19);
		strcpy(pattern->hash, text + strlen(text) - 16);
		text = name;
	}
	if (pattern && text && fill_pattern(pattern, text))
		return pattern;
	kymo_pattern_destroy(pattern);
	return NULL;
}

void kymo_pattern_destroy(struct kymo_pattern *pattern)
{
	if (!pattern)
		return;
	free(pattern->name);
	free(pattern->glob);
	free(pattern->parameters);
	free(pattern->parameters_glob);
	free(pattern->rest);
	free(pattern);
}

/* ---- matching -------------------------------------------------------------------------------- */

/* What a user may leave out at `at`: its end, or `at`. */
static const char *optional(const char *name, const char *at, const char *end)
{
	if (!strncmp(at, ANONYMOUS, strlen(ANONYMOUS)))
		return at + strlen(ANONYMOUS);
	if (!strncmp(at, "::<", 3))
		return kymo_name_skip(name, at + 2, end) > at + 2 ? kymo_name_skip(name, at + 2, end) : at;
	return at > name && (*at == '<' || *at == '[') ? kymo_name_skip(name, at, end) : at;
}

static bool is_same_name(const char *wanted, const char *name)
{
	const char *at = name, *end = name + strlen(name);

	while (*wanted || at < end) {
		const char *behind;

		if (*wanted && *wanted == *at) {
			wanted++;
			at++;
			continue;
		}
		behind = optional(name, at, end);
		if (behind == at)
			return false;
		at = behind;
	}
	return true;
}

/* The name without all that may be left out. */
static void strip(const char *name, char *out)
{
	const char *end = name + strlen(name);

	for (const char *at = name; at < end;) {
		const char *behind = optional(name, at, end);

		if (behind == at)
			*out++ = *at++;
		else
			at = behind;
	}
	*out = '\0';
}

static bool matches_glob(const char *glob, const char *name)
{
	char stripped[KYMO_DEMANGLED_MAX];

	if (!fnmatch(glob, name, 0))
		return true;
	strip(name, stripped);
	return !fnmatch(glob, stripped, 0);
}

/* A part of a function that the compiler has moved elsewhere is not where calls of it begin. */
static bool is_part(const char *rest)
{
	return strstr(rest, "[clone.cold") || strstr(rest, "[clone.part");
}

/* "<shop::Cart>::add" of Rust is written "shop::Cart::add" by users. In place. */
static bool unwrap(char *name)
{
	char *close = (char *)kymo_name_skip(name, name, name + strlen(name)) - 1;

	if (*name != '<' || close < name || strncmp(close + 1, "::", 2) != 0 ||
	    memmem(name, (size_t)(close - name), " as ", 4))
		return false;
	memmove(close, close + 1, strlen(close));
	memmove(name, name + 1, strlen(name));
	return true;
}

static bool matches_name(const struct kymo_pattern *pattern, char *name)
{
	do
		if (pattern->glob ? matches_glob(pattern->glob, name) : is_same_name(pattern->name, name))
			return true;
	while (unwrap(name));
	return false;
}

bool kymo_pattern_matches(const struct kymo_pattern *pattern, const char *demangled)
{
	char text[KYMO_DEMANGLED_MAX];
	struct sym_parts parts;

	if (strlen(demangled) >= sizeof(text))
		return false;
	sym_parts_find(demangled, &parts);
	spell(parts.name, parts.parameters, text);
	if (!matches_name(pattern, text))
		return false;
	if (pattern->parameters) {
		spell(parts.parameters, parts.rest, text);
		if (strcmp(pattern->parameters, text) &&
		    (!pattern->parameters_glob || fnmatch(pattern->parameters_glob, text, 0)))
			return false;
	}
	spell(parts.rest, demangled + strlen(demangled), text);
	return !strncmp(pattern->rest, text, strlen(pattern->rest)) &&
	       (pattern->glob || strstr(pattern->rest, "[clone") || !is_part(text));
}

bool kymo_pattern_means(const struct kymo_pattern *pattern, const char *name)
{
	char text[KYMO_DEMANGLED_MAX];

	return kymo_is_mangled(name) && strstr(name, pattern->needle) && strstr(name, pattern->hash) &&
	       kymo_demangle(name, text) && kymo_pattern_matches(pattern, text);
}
