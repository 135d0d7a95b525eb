#include "probe/spec/spec_arg_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"

bool kymo_spec_arg_is_taken(const struct kymo_spec *spec, struct kymo_spec_piece name)
{
	for (size_t i = 0; i < spec->n_args; i++)
		if (kymo_spec_piece_is(name, spec->args[i].name))
			return true;
	return false;
}

/* kymo has a value of that name itself. */
static bool is_kymos(struct kymo_spec_piece name)
{
	return kymo_spec_piece_is(name, KYMO_STACK_POINTER_FIELD) || kymo_spec_piece_is(name, KYMO_STACK_FIELD);
}

struct kymo_error *kymo_spec_arg_read_name(const char *text, struct kymo_spec_piece name, const struct kymo_spec *spec,
					   char **ret)
{
	kymo_cleanup_free char *copy = NULL;
	const char *bad;

	if (name.start == name.end)
		return kymo_error_at(text, name.start,
				     "there is no name before '='; what is to change the program begins with 'set', as "
				     "in: set x = 1");
	if (!kymo_spec_is_name(name, &bad))
		return kymo_error_at(text, bad,
				     "the name of an argument has letters, digits and '_' only, no digit first");
	if (kymo_spec_piece_size(name) > KYMO_SPEC_NAME_MAX)
		return kymo_error_at(text, name.start + KYMO_SPEC_NAME_MAX,
				     "the name of an argument has at most %d characters", KYMO_SPEC_NAME_MAX);
	copy = strndup(name.start, kymo_spec_piece_size(name));
	if (!copy)
		return &kymo_error_no_memory;
	if (is_kymos(name))
		return kymo_error_at(text, name.start,
				     "'%s' is the name of a value that kymo records by itself; use another", copy);
	if (kymo_spec_arg_is_taken(spec, name))
		return kymo_error_at(text, name.start, "duplicate argument name '%s'", copy);
	*ret = kymo_take(copy);
	return NULL;
}

static bool is_word(char c)
{
	return c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || kymo_spec_is_digit(c);
}

/* Whether the sign at `at`, a star or an ampersand, leads to what is behind it, and does not join two values. */
static bool is_prefix(struct kymo_spec_piece piece, const char *at, bool has_value)
{
	while (at < piece.end && (*at == '*' || *at == '&' || *at == ' '))
		at++;
	return !has_value || (at < piece.end && *at == ')');
}

/* The bracket that closes the one which the comma at `at` lies in, or the end. */
static const char *skip_length(const char *at, const char *end)
{
	int depth = 1;

	for (; at < end; at++) {
		depth += (*at == '(') - (*at == ')');
		if (!depth)
			break;
	}
	return at;
}

struct kymo_spec_piece kymo_spec_arg_word(struct kymo_spec_piece piece)
{
	struct kymo_spec_piece found = { piece.start, piece.start }, none = found;
	int depth = 0;

	for (const char *c = piece.start; c < piece.end; c++) {
		const char *word = c;

		depth += (*c == '[') - (*c == ']');
		while (c < piece.end && is_word(*c))
			c++;
		if (c > word) {
			const bool is_call = c < piece.end && *c == '(';

			if (kymo_spec_piece_is((struct kymo_spec_piece){ word, c }, "sizeof"))
				return none;
			if (!depth && !is_call && !kymo_spec_is_digit(*word))
				found = (struct kymo_spec_piece){ word, c };
			c--;
		} else if (*c == '-' && c + 1 < piece.end && c[1] == '>') {
			c++;
		} else if (*c == ',' && !depth) {
			c = skip_length(c, piece.end) - 1;
		} else if (!depth &&
			   ((*c != '*' && *c != '&') || !is_prefix(piece, c, kymo_spec_piece_size(found) > 0)) &&
			   !strchr(".[](),: ", *c)) {
			return none;
		}
	}
	return found;
}

/* An expression is called by its last name; one that has none, and what is none, are numbered. */
struct kymo_error *kymo_spec_arg_make_name(const char *text, struct kymo_spec_piece piece, const struct kymo_spec *spec,
					   bool is_expression, char **ret)
{
	kymo_cleanup_free char *name = NULL;
	const char *at = piece.start;
	struct kymo_spec_piece word = { NULL, NULL };

	if (is_expression)
		word = kymo_spec_arg_word(piece);
	if (kymo_spec_piece_size(word) != kymo_spec_piece_size(piece) &&
	    (kymo_spec_arg_is_taken(spec, word) || is_kymos(word)))
		word.end = word.start;
	if (kymo_spec_piece_size(word) && kymo_spec_piece_size(word) <= KYMO_SPEC_NAME_MAX) {
		name = strndup(word.start, kymo_spec_piece_size(word));
		if (!name)
			return &kymo_error_no_memory;
	} else if (asprintf(&name, is_expression ? "value%zu" : "arg%zu", spec->n_args + 1) < 0) {
		name = NULL;
		return &kymo_error_no_memory;
	}
	if (kymo_spec_arg_is_taken(spec, kymo_spec_piece_of(name)))
		return kymo_error_at(text, at,
				     "this argument would be called '%s' as another one is; name it: NAME=...", name);
	*ret = kymo_take(name);
	return NULL;
}
