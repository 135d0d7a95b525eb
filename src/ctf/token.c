#include "ctf/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

void kymo_tokenizer_init(struct tokenizer *tokenizer, const char *text, size_t size)
{
	*tokenizer = (struct tokenizer){ .at = text, .end = text + size, .line = 1 };
}

/* Over white space and both kinds of comment. */
static const char *skip_space(struct tokenizer *t)
{
	while (t->at < t->end) {
		char c = *t->at;

		if (c == '\n') {
			t->line++;
			t->at++;
		} else if (c == ' ' || c == '\t' || c == '\r') {
			t->at++;
		} else if (c == '/' && t->end - t->at >= 2 && t->at[1] == '/') {
			while (t->at < t->end && *t->at != '\n')
				t->at++;
		} else if (c == '/' && t->end - t->at >= 2 && t->at[1] == '*') {
			for (t->at += 2; t->end - t->at >= 2 && memcmp(t->at, "*/", 2); t->at++)
				t->line += *t->at == '\n';
			if (t->end - t->at < 2)
				return "a comment has no end";
			t->at += 2;
		} else {
			break;
		}
	}
	return NULL;
}

static const char *string_end(struct tokenizer *t)
{
	for (t->at++; t->at < t->end && *t->at != '"'; t->at++) {
		if (*t->at == '\\' && t->end - t->at >= 2)
			t->at++;
		if (*t->at == '\n' || !*t->at)
			return "a string has no end";
	}
	if (t->at == t->end)
		return "a string has no end";
	t->at++;
	return NULL;
}

const char *kymo_tokenizer_next(struct tokenizer *t, struct token *ret)
{
	const char *wrong = skip_space(t);
	struct token token = { .text = t->at, .line = t->line };

	if (wrong)
		return wrong;
	if (t->at == t->end) {
		token.kind = TOKEN_END;
	} else if (*t->at == '"') {
		token.kind = TOKEN_STRING;
		wrong = string_end(t);
		if (wrong)
			return wrong;
	} else if (is_name(*t->at)) {
		token.kind = is_digit(*t->at) ? TOKEN_NUMBER : TOKEN_NAME;
		while (t->at < t->end && is_name(*t->at))
			t->at++;
	} else if (*t->at && strchr("{}[]();=.,:-<>", *t->at)) {
		token.kind = TOKEN_MARK;
		t->at += t->end - t->at >= 2 && !memcmp(t->at, ":=", 2) ? 2 : 1;
	} else {
		return "a character that has no place here";
	}
	token.size = (size_t)(t->at - token.text);
	*ret = token;
	return NULL;
}

bool kymo_token_equal(const struct token *a, const struct token *b)
{
	return a->kind == b->kind && a->size == b->size && !memcmp(a->text, b->text, a->size);
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

bool kymo_token_number(const struct token *token, uint64_t *ret)
{
	const char *at = token->text, *end = at + token->size;
	unsigned int base = 10;
	uint64_t value = 0;

	if (token->kind != TOKEN_NUMBER)
		return false;
	if (token->size > 2 && at[0] == '0' && (at[1] | 0x20) == 'x') {
		base = 16;
		at += 2;
	}
	for (; at < end; at++) {
		unsigned int digit = (unsigned int)digit_value(*at);

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

/* The byte that the escape after a backslash stands for; `*at` goes after it. 0 where there is none. */
static char unescape(const char **at, const char *end)
{
	static const char from[] = "nrtabfv\\\"'?", to[] = "\n\r\t\a\b\f\v\\\"'?";
	const char *known = strchr(from, **at);
	unsigned int octal = 0;

	if (known && *known) {
		(*at)++;
		return to[known - from];
	}
	for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++)
		octal = octal * 8 + (unsigned int)(*(*at)++ - '0');
	return octal <= 0xff ? (char)octal : 0;
}

int kymo_token_string(const struct token *token, char **ret)
{
	const char *at = token->text + 1, *end = token->text + token->size - 1;
	char *text, *to;

	if (token->kind != TOKEN_STRING)
		return -EINVAL;
	text = to = malloc(token->size);
	if (!text)
		return -ENOMEM;
	while (at < end) {
		char c = *at++;

		if (c == '\\' && at < end)
			c = unescape(&at, end);
		if (!c) {
			free(text);
			return -EINVAL;
		}
		*to++ = c;
	}
	*to = '\0';
	*ret = text;
	return 0;
}
