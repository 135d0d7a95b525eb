/*
 * Tokens of TSDL. Owns no memory: a token points into the text.
 */
#ifndef KYMO_CTF_TOKEN_H
#define KYMO_CTF_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
	TOKEN_END,
	TOKEN_NAME,   /* identifier or keyword */
	TOKEN_NUMBER, /* decimal or 0x…; the sign is a mark of its own */
	TOKEN_STRING, /* with its quotes and escapes */
	TOKEN_MARK,   /* one of {}[]();=.,:- or := */
};

struct token {
	enum token_kind kind;
	const char *text;
	size_t size;
	unsigned int line;
};

struct tokenizer {
	const char *at, *end;
	unsigned int line;
};

/* Start on `size` bytes of `text`, which outlives the tokens. */
void kymo_tokenizer_init(struct tokenizer *tokenizer, const char *text, size_t size);

/* The next token; TOKEN_END for ever at the end. NULL, or what is wrong at tokenizer->line (static text). */
const char *kymo_tokenizer_next(struct tokenizer *tokenizer, struct token *ret);

bool kymo_token_equal(const struct token *a, const struct token *b);

/* The value of a TOKEN_NUMBER; false where 64 bits don't hold it. */
bool kymo_token_number(const struct token *token, uint64_t *ret);

/* The text of a TOKEN_STRING with its escapes resolved, into fresh memory. 0, -EINVAL for an escape that is unknown or
 * makes a NUL, -ENOMEM. */
int kymo_token_string(const struct token *token, char **ret);

#endif
