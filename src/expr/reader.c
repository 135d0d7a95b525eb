#include "expr/reader.h"

#include <string.h>

const char *expr_skip_blanks(struct expr_reader *reader)
{
	while (reader->at < reader->tree->source.end && expr_is_blank(*reader->at))
		reader->at++;
	return reader->at;
}

bool expr_next_is(struct expr_reader *reader, const char *sign)
{
	const size_t n = strlen(sign);

	expr_skip_blanks(reader);
	return (size_t)(reader->tree->source.end - reader->at) >= n && !memcmp(reader->at, sign, n);
}

uint8_t expr_fail_with(struct expr_reader *reader, struct kymo_error *error)
{
	reader->error = error;
	return 0;
}

bool expr_is_word(const struct expr_reader *reader, const char *word)
{
	const size_t n = strlen(word), rest = (size_t)(reader->tree->source.end - reader->at);

	return rest >= n && !memcmp(reader->at, word, n) &&
	       (rest == n || (!expr_is_letter(reader->at[n]) && !expr_is_digit(reader->at[n])));
}

bool expr_skip_word(struct expr_reader *reader, const char *word)
{
	const bool is_there = expr_is_word(reader, word);

	reader->at += is_there ? strlen(word) : 0;
	return is_there;
}
