/* Punycode. Private to the room. */
#ifndef KYMO_SYM_PUNYCODE_H
#define KYMO_SYM_PUNYCODE_H

#include <stdbool.h>
#include <stddef.h>

struct sym_sink;

/* The characters that [text, text + size) encodes. False where it encodes none; the sink may have part of them. */
bool sym_put_punycode(const char *text, size_t size, struct sym_sink *sink);

#endif
