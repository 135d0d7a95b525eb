/* Globs in which names of Go, C++ and Rust may be: some of their characters stand for themselves. */
#include "sym/glob.h"

#include <stdlib.h>
#include <string.h>

#include "sym/names.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

/* The end of a set of characters, or of the one that begins none. */
static const char *set_end(const char *at, const char *end)
{
	const char *first = at + 1 + (at + 1 < end && (at[1] == '!' || at[1] == '^')), *close;

	if (first >= end)
		return at + 1;
	close = memchr(first + 1, ']', (size_t)(end - first - 1));
	return close ? close + 1 : at + 1;
}

/* Within brackets: the "*" of "char const*" and "*mut T" is a pointer's, and a "[" begins an array. */
static bool is_of_type(const char *text, const char *at, const char *end)
{
	const char *before = at;

	if (*at == '[')
		return true;
	if (*at != '*')
		return false;
	if (!strncmp(at, "*const ", 7) || !strncmp(at, "*mut ", 5))
		return true;
	while (before > text && before[-1] == ' ')
		before--;
	return before > text &&
	       (is_letter(before[-1]) || (before[-1] >= '0' && before[-1] <= '9') || strchr(">*&)", before[-1]));
}

struct scan {
	const char *text, *end;
	const char *group_end; /* of brackets that are open */
};

/* How many characters at `at` stand for themselves, whatever they are elsewhere; 0: `at` has what a glob may have. */
static size_t literal_size(struct scan *scan, const char *at)
{
	const char *behind;

	if (!strncmp(at, "[...]", 5))
		return 5; /* Go's generic functions */
	if (at[0] == '(' && at[1] == '*' && is_letter(at[2]))
		return 2; /* methods of Go's pointers */
	behind = kymo_name_skip(scan->text, at, scan->end);
	if (behind > at && (*at == 'o' || *at == '['))
		return (size_t)(behind - at);
	if (behind > scan->group_end)
		scan->group_end = behind;
	return at < scan->group_end && is_of_type(scan->text, at, scan->end);
}

bool kymo_is_glob(const char *text)
{
	struct scan scan = { text, text + strlen(text), text };

	for (const char *at = text; *at;) {
		const size_t n = literal_size(&scan, at);

		if (!n && strchr("*?[", *at))
			return true;
		at += n ? n : 1;
	}
	return false;
}

static char *put_literal(char *to, const char *at, size_t n)
{
	for (; n--; at++) {
		if (strchr("*?[\\", *at))
			*to++ = '\\';
		*to++ = *at;
	}
	return to;
}

char *kymo_glob_create(const char *text)
{
	struct scan scan = { text, text + strlen(text), text };
	char *glob = malloc(2 * strlen(text) + 1), *to = glob;

	if (!glob)
		return NULL;
	for (const char *at = text, *next; *at; at = next) {
		const size_t n = *at == '\\' ? 0 : literal_size(&scan, at);

		next = n ? at + n : *at == '[' ? set_end(at, scan.end) : at + (*at == '\\' && at[1] ? 2 : 1);
		if (n)
			to = put_literal(to, at, n);
		else
			to = (char *)memcpy(to, at, (size_t)(next - at)) + (next - at);
	}
	*to = '\0';
	return glob;
}
