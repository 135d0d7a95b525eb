/* Names of types without debug information: C's own, those of <stdint.h>, and those of the kernel's grammar. */
#include <string.h>

#include "base/cleanup.h"
#include "expr/typename.h"

struct known {
	const char *name;
	struct kymo_expr_type type;
};

#define TYPE(bytes, has_sign) \
	{ \
		.size = (bytes), .is_signed = (has_sign) \
	}

/* One word that says all. */
static const struct known whole[] = {
	{ "u8", TYPE(1, false) },
	{ "u16", TYPE(2, false) },
	{ "u32", TYPE(4, false) },
	{ "u64", TYPE(8, false) },
	{ "s8", TYPE(1, true) },
	{ "s16", TYPE(2, true) },
	{ "s32", TYPE(4, true) },
	{ "s64", TYPE(8, true) },
	{ "uint8_t", TYPE(1, false) },
	{ "uint16_t", TYPE(2, false) },
	{ "uint32_t", TYPE(4, false) },
	{ "uint64_t", TYPE(8, false) },
	{ "int8_t", TYPE(1, true) },
	{ "int16_t", TYPE(2, true) },
	{ "int32_t", TYPE(4, true) },
	{ "int64_t", TYPE(8, true) },
	{ "size_t", TYPE(8, false) },
	{ "ssize_t", TYPE(8, true) },
	{ "uintptr_t", TYPE(8, false) },
	{ "intptr_t", TYPE(8, true) },
	{ "off_t", TYPE(8, true) },
	{ "pid_t", TYPE(4, true) },
	{ "bool", { .size = 1, .of = &expr_boolean } },
	{ "_Bool", { .size = 1, .of = &expr_boolean } },
	{ "float", { .size = 4, .of = &expr_float } },
	{ "double", { .size = 8, .of = &expr_double } },
	{ "void", { .size = 8, .of = &expr_void } },
};

/* C's words, in any order: what each adds. */
enum word { UNSIGNED = 1, SIGNED = 2, CHAR = 4, SHORT = 8, INT = 16, LONG = 32, LONG_LONG = 64 };

static const struct {
	const char *name;
	enum word word;
} words[] = {
	{ "unsigned", UNSIGNED }, { "signed", SIGNED }, { "char", CHAR },
	{ "short", SHORT },       { "int", INT },       { "long", LONG },
};

static size_t word_size(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && (expr_is_letter(at[n]) || (n && expr_is_digit(at[n]))))
		n++;
	return n;
}

static bool is_type_word(const char *at, size_t size, const char *word)
{
	return size == strlen(word) && !memcmp(at, word, size);
}

/* The words that came before, and this one; 0 where they do not go together. */
static unsigned int add_word(unsigned int before, unsigned int word)
{
	const unsigned int sizes = CHAR | SHORT | LONG | LONG_LONG;

	if (word == LONG && (before & LONG))
		return (before & ~(unsigned int)LONG) | LONG_LONG;
	if ((before & word) || ((word & (SIGNED | UNSIGNED)) && (before & (SIGNED | UNSIGNED))) ||
	    ((word & sizes) && (before & sizes)) || ((word & CHAR) && (before & INT)) ||
	    ((word & INT) && (before & CHAR)))
		return 0;
	return before | word;
}

static struct kymo_expr_type type_of_words(unsigned int found)
{
	struct kymo_expr_type type = { .size = 4, .is_signed = !(found & UNSIGNED) };

	if (found & CHAR)
		type.size = 1;
	else if (found & SHORT)
		type.size = 2;
	else if (found & (LONG | LONG_LONG))
		type.size = 8;
	return type;
}

static unsigned int find_word(const char *at, size_t size)
{
	for (size_t i = 0; i < kymo_countof(words); i++)
		if (is_type_word(at, size, words[i].name))
			return words[i].word;
	return 0;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && expr_is_blank(*at))
		at++;
	return at;
}

const char *expr_read_type(const char *at, const char *end, struct kymo_expr_type *ret)
{
	unsigned int found = 0, next;
	size_t n = word_size(at, end);
	const char *behind = NULL;

	for (size_t i = 0; i < kymo_countof(whole); i++) {
		if (is_type_word(at, n, whole[i].name)) {
			*ret = whole[i].type;
			return at + n;
		}
	}
	while ((next = find_word(at, n)) && (next = add_word(found, next))) {
		found = next;
		behind = at + n;
		at = skip_blanks(behind, end);
		n = word_size(at, end);
	}
	if (found)
		*ret = type_of_words(found);
	return behind;
}

const char *expr_skip_name(const char *at, const char *end)
{
	for (;;) {
		at += word_size(at, end);
		if (end - at < 3 || at[0] != ':' || at[1] != ':' || !expr_is_letter(at[2]))
			return at;
		at += 2;
	}
}

bool expr_find_type_name(const char *at, const char *end, const char **end_ret, bool *has_tag_ret)
{
	static const char *const tags[] = { "struct", "union", "enum", "class" };
	const char *behind;

	*has_tag_ret = false;
	for (size_t i = 0; i < kymo_countof(tags); i++) {
		const size_t n = strlen(tags[i]);

		if (!is_type_word(at, word_size(at, end), tags[i]))
			continue;
		at = skip_blanks(at + n, end);
		*has_tag_ret = true;
	}
	behind = expr_skip_name(at, end);
	*end_ret = behind;
	return behind > at;
}
