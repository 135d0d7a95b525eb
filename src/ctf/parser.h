/* What parsers of the metadata have in common: the token at hand, and what a text must say next. Private to the room.
 * Functions that return false have set the error. */
#ifndef KYMO_CTF_PARSER_H
#define KYMO_CTF_PARSER_H

#include "base/vec.h"
#include "ctf/token.h"
#include "ctf/trace.h"

struct parser {
	struct tokenizer in;
	struct token now;
	struct kymo_error *error; /* set by the function that returned false */
	KYMO_VEC(struct kymo_ctf_env) env;
	KYMO_VEC(struct kymo_ctf_event) events;
	uint8_t *ids;                     /* a bit for each id that has been declared */
	bool has_real[KYMO_TYPE_F64 + 1]; /* that type is declared */
	struct kymo_ctf_trace trace;      /* but for env and events */
};

/* Fail with the line and a sentence. Always false. */
__attribute__((format(printf, 3, 4))) bool kymo_parser_fail_at(struct parser *p, unsigned int line, const char *format,
							       ...);

/* Fail at the token at hand: the `size` bytes of `what` were expected. Always false. */
bool kymo_parser_fail_expected(struct parser *p, const char *what, size_t size);

/* Always false. */
bool kymo_parser_no_memory(struct parser *p);

/* Go to the next token. */
bool kymo_parser_advance(struct parser *p);

/* Whether the token at hand is that name, number or mark. */
bool kymo_parser_at_mark(const struct parser *p, const char *text);

/* The tokens of `text` must come next. */
bool kymo_parser_expect(struct parser *p, const char *text);

/* The string at hand into fresh memory. */
bool kymo_parser_take_string(struct parser *p, char **ret);

/* The number at hand, which is `limit` at most. */
bool kymo_parser_take_limited_number(struct parser *p, uint64_t limit, uint64_t *ret);

/* The name at hand into fresh memory, without its first `skip` characters. */
bool kymo_parser_take_name(struct parser *p, size_t skip, char **ret);

#endif
