/* Characters of UTF-8 in bytes from anywhere, and which of them a terminal must not get. */
#ifndef KYMO_BASE_UTF8_H
#define KYMO_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The code point of the character that begins at `at`, of `n` > 0 bytes, and the bytes that it takes. -1, and one byte,
 * for what is no character: overlong forms, surrogates, what lies beyond U+10FFFF (RFC 3629), and a beginning that the
 * bytes end in. Reads no byte after a NUL, so a string may be given with any greater `n`.
 */
int32_t kymo_utf8_decode(const char *at, size_t n, size_t *size_ret);

/* Whether a character has no glyph of its own, and changes how others are shown: controls, marks of direction, joiners,
 * tags. */
bool kymo_utf8_is_hidden(int32_t point);

/* How many characters the `n` bytes at `text` are. A byte that is no character counts as one. */
size_t kymo_utf8_count(const char *text, size_t n);

/* The length to which `text`, which is longer than `n` bytes, can be cut without cutting a character: `n` at most. */
size_t kymo_utf8_cut(const char *text, size_t n);

/* Text from files and processes, with what a terminal would take as a command replaced by "?". */
void kymo_utf8_print(FILE *out, const char *text);

#endif
