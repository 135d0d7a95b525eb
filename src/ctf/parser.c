#include "ctf/parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool kymo_parser_fail_at(struct parser *p, unsigned int line, const char *format, ...)
{
	va_list args;
	char *what;

	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	p->error = what ? kymo_error_create(KYMO_ERROR_BAD_DATA, "metadata:%u: %s", line, what) : &kymo_error_no_memory;
	free(what);
	return false;
}

bool kymo_parser_no_memory(struct parser *p)
{
	p->error = &kymo_error_no_memory;
	return false;
}

bool kymo_parser_advance(struct parser *p)
{
	const char *wrong = kymo_tokenizer_next(&p->in, &p->now);

	return wrong ? kymo_parser_fail_at(p, p->in.line, "%s", wrong) : true;
}

/* A token's own text can hold what a terminal obeys, so strings are not quoted. */
bool kymo_parser_fail_expected(struct parser *p, const char *what, size_t size)
{
	if (p->now.kind == TOKEN_END)
		return kymo_parser_fail_at(p, p->now.line, "'%.*s' was expected; the text ends", (int)size, what);
	if (p->now.kind == TOKEN_STRING)
		return kymo_parser_fail_at(p, p->now.line, "'%.*s' was expected; a string stands there", (int)size,
					   what);
	return kymo_parser_fail_at(p, p->now.line, "'%.*s' was expected, not '%.*s'", (int)size, what,
				   p->now.size < 40 ? (int)p->now.size : 40, p->now.text);
}

bool kymo_parser_at_mark(const struct parser *p, const char *text)
{
	return p->now.kind != TOKEN_STRING && p->now.size == strlen(text) && !memcmp(p->now.text, text, p->now.size);
}

bool kymo_parser_expect(struct parser *p, const char *text)
{
	struct tokenizer want;
	struct token token;

	kymo_tokenizer_init(&want, text, strlen(text));
	for (;;) {
		kymo_tokenizer_next(&want, &token);
		if (token.kind == TOKEN_END)
			return true;
		if (!kymo_token_equal(&token, &p->now))
			return kymo_parser_fail_expected(p, token.text, token.size);
		if (!kymo_parser_advance(p))
			return false;
	}
}

bool kymo_parser_take_string(struct parser *p, char **ret)
{
	int err;

	if (p->now.kind != TOKEN_STRING)
		return kymo_parser_fail_expected(p, "string", 6);
	err = kymo_token_string(&p->now, ret);
	if (err == -ENOMEM)
		return kymo_parser_no_memory(p);
	if (err)
		return kymo_parser_fail_at(p, p->now.line, "a string has an escape that is not known");
	if (kymo_parser_advance(p))
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}

bool kymo_parser_take_limited_number(struct parser *p, uint64_t limit, uint64_t *ret)
{
	uint64_t value;

	if (p->now.kind != TOKEN_NUMBER)
		return kymo_parser_fail_expected(p, "number", 6);
	if (!kymo_token_number(&p->now, &value) || value > limit)
		return kymo_parser_fail_at(p, p->now.line, "a number is out of range");
	if (!kymo_parser_advance(p))
		return false;
	*ret = value;
	return true;
}

bool kymo_parser_take_name(struct parser *p, size_t skip, char **ret)
{
	if (p->now.kind != TOKEN_NAME || p->now.size <= skip)
		return kymo_parser_fail_expected(p, "name", 4);
	*ret = strndup(p->now.text + skip, p->now.size - skip);
	if (!*ret)
		return kymo_parser_no_memory(p);
	if (kymo_parser_advance(p))
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}
