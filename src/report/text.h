/*
 * Numbers, times and untrusted text as people read them.
 */
#ifndef KYMO_REPORT_TEXT_H
#define KYMO_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wire/types.h"

/* Room for any number that these functions format. */
#define TEXT_NUMBER 48

/*
 * The bytes at *text as one character that is safe on a terminal; *text goes after it (never over the NUL). Returns
 * its code point, or -1 where a byte must be shown as \xNN: control characters, what is no UTF-8,
 * what turns the direction of writing, and without `unicode` everything that is not ASCII.
 */
int32_t kymo_text_next(const char **text, bool unicode);

/* `text` with what kymo_text_next() refuses written as \xNN, in fresh memory; NULL when memory is out. */
char *kymo_text_escape(const char *text, bool unicode);

/* Write the same. */
void kymo_text_write(FILE *out, const char *text, bool unicode);

/* Write `text` in quotes as a C string: the same, and quotes, backslashes, newlines and their like escaped. \xNN has
 * two digits always. */
void kymo_text_quote(FILE *out, const char *text, bool unicode);

/* Columns of text that kymo_text_escape() made. */
unsigned int kymo_text_columns(const char *text);

/* Bytes of the longest beginning of `text` that fits in `columns`, and the columns that it takes. */
size_t kymo_text_fit(const char *text, unsigned int columns, unsigned int *columns_ret);

/* As strcmp(); NULL comes first. */
int kymo_text_compare(const char *a, const char *b);

/* A decimal that is read back as the same double, of 15 digits if that is enough, of 17 at most: 0.25, 1e+300; inf,
 * -inf, nan. */
char *kymo_text_double(char buffer[TEXT_NUMBER], double value);

/* The same of a value of `type`: of KYMO_TYPE_F32 as a float, of 6 digits to 9. */
char *kymo_text_real(char buffer[TEXT_NUMBER], enum kymo_type type, double value);

/* 1,234,567; and for `negative` the same with a minus. */
char *kymo_text_count(char buffer[TEXT_NUMBER], uint64_t value);
char *kymo_text_signed(char buffer[TEXT_NUMBER], uint64_t magnitude, bool negative);

/* Three digits and a decimal suffix: 812, 16.4k, 1.23M. */
char *kymo_text_short(char buffer[TEXT_NUMBER], double value);

/* A power of two with a binary suffix: 512, 1K, 64M. */
char *kymo_text_power(char buffer[TEXT_NUMBER], unsigned int exponent);

/* 512ns, 1.0µs (1.0us without unicode), 33ms, 4.3s. */
char *kymo_text_span(char buffer[TEXT_NUMBER], uint64_t ns, bool unicode);

/* Seconds with `decimals` (0 to 9) of them, cut, not rounded: 1.002. */
char *kymo_text_seconds(char buffer[TEXT_NUMBER], int64_t ns, unsigned int decimals);

#endif
