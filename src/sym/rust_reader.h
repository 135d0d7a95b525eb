/* Letters, numbers and identifiers of the newer mangling of Rust. Private to the room. */
#ifndef KYMO_SYM_RUST_READER_H
#define KYMO_SYM_RUST_READER_H

#include "sym/rust.h"

struct rust_reader {
	const char *name; /* after "_R": what references count from */
	size_t n, at;
	struct sym_sink *sink; /* NULL: nothing is shown */
	unsigned int depth, steps;
	uint64_t lifetimes; /* that are bound here */
};

/* Show it, where anything is shown. */
void rust_put(struct rust_reader *r, const char *text);
void rust_put_number(struct rust_reader *r, uint64_t number);

/* The next letter; NUL at the end. */
char rust_peek(const struct rust_reader *r);

/* Take the next letter where it is `c`. */
bool rust_take(struct rust_reader *r, char c);

bool rust_is_digit(char c);

/* "_" is 0, "0_" 1, "Z_" 62 */
bool rust_read_base62(struct rust_reader *r, uint64_t *ret);

/* What `tag` begins, one more than its number; 0 where it is not there. */
bool rust_read_optional(struct rust_reader *r, char tag, uint64_t *ret);

struct rust_identifier {
	const char *text;
	size_t n;
	bool is_punycode;
};

bool rust_read_identifier(struct rust_reader *r, struct rust_identifier *ret);
bool rust_put_identifier(struct rust_reader *r, const struct rust_identifier *id);

#endif
