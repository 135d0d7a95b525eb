/* A text that is read from left to right. Private to the room. */
#ifndef KYMO_EXPR_READER_H
#define KYMO_EXPR_READER_H

#include "base/caret.h"
#include "expr/tree.h"

struct expr_reader {
	struct expr_tree *tree;
	const char *at;
	unsigned int depth; /* of brackets and signs */
	struct kymo_error *error;
};

/* After blanks. Returns where it is then. */
const char *expr_skip_blanks(struct expr_reader *reader);

/* Whether `sign` comes next, after blanks. */
bool expr_next_is(struct expr_reader *reader, const char *sign);

/* Whether the reader is at the word, and at no longer one. */
bool expr_is_word(const struct expr_reader *reader, const char *word);

/* The same; it is after it then. */
bool expr_skip_word(struct expr_reader *reader, const char *word);

/* Set the reader's error, which is a sentence about a place in the text. Returns 0. */
uint8_t expr_fail_with(struct expr_reader *reader, struct kymo_error *error);

#define expr_fail(reader, at, ...) expr_fail_with(reader, kymo_error_at((reader)->tree->source.text, at, __VA_ARGS__))

#endif
