/* Pieces of the text of a SPEC, and what is wrong with them: for spec.c, which reads prefix, file and location, and
 * spec_arg.c, which reads arguments. */
#ifndef KYMO_PROBE_SPEC_SPEC_PIECE_H
#define KYMO_PROBE_SPEC_SPEC_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "probe/spec/spec.h"

/* Longest name of an event, a group or an argument; the kernel has 63 and 31. */
#define KYMO_SPEC_NAME_MAX 63

/* The most characters of a SPEC. */
#define KYMO_SPEC_TEXT_MAX 4096

/* A piece of the text that is being parsed, [start, end). */
struct kymo_spec_piece {
	const char *start, *end;
};

static inline bool kymo_spec_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline const char *kymo_spec_skip_blanks(const char *at)
{
	while (kymo_spec_is_space(*at))
		at++;
	return at;
}

/* The byte after the word, which may have blanks before it; NULL where another word is there. */
static inline const char *kymo_spec_skip_word(const char *at, const char *word)
{
	const size_t n = strlen(word);

	at = kymo_spec_skip_blanks(at);
	return !strncmp(at, word, n) && (!at[n] || kymo_spec_is_space(at[n])) ? at + n : NULL;
}

static inline bool kymo_spec_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline size_t kymo_spec_piece_size(struct kymo_spec_piece piece)
{
	return (size_t)(piece.end - piece.start);
}

static inline struct kymo_spec_piece kymo_spec_piece_of(const char *text)
{
	return (struct kymo_spec_piece){ text, text + strlen(text) };
}

static inline bool kymo_spec_piece_is(struct kymo_spec_piece piece, const char *word)
{
	return kymo_spec_piece_size(piece) == strlen(word) && !memcmp(piece.start, word, kymo_spec_piece_size(piece));
}

static inline bool kymo_spec_piece_starts(struct kymo_spec_piece piece, const char *word)
{
	return kymo_spec_piece_size(piece) >= strlen(word) && !memcmp(piece.start, word, strlen(word));
}

/* The byte that ends the quotation which begins at `at`, a character or a text of C; `at` where none does. */
const char *kymo_spec_skip_quoted(const char *at, const char *end);

/*
 * The number at `start`, decimal, 0x or 0 for octal as in the kernel, without a sign. `end_ret` is the first byte that
 * does not belong to it (`start` where there is none). False on overflow of 64 bits, too.
 */
bool kymo_spec_number(const char *start, const char *end, const char **end_ret, uint64_t *ret);

/* Whether the piece is [A-Za-z_][A-Za-z0-9_]*; `bad_ret` is the first invalid byte. */
bool kymo_spec_is_name(struct kymo_spec_piece piece, const char **bad_ret);

/* Whether the piece starts as an argument does: an optional name with "=", then one of % $ \ @ + -. */
bool kymo_spec_is_arg(struct kymo_spec_piece piece);

#endif
