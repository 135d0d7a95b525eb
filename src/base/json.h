/* Values of JSON. */
#ifndef KYMO_BASE_JSON_H
#define KYMO_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Write the `n` bytes at `bytes` as a JSON string, with its quotes. JSON knows no bytes: what is no UTF-8 becomes
 * U+FFFD. What a terminal must not get (kymo_utf8_is_hidden()) is escaped by its number. (RFC 8259, section 7.)
 */
void kymo_json_bytes(FILE *out, const char *bytes, size_t n);

/* The same of a string; NULL is null. */
void kymo_json_string(FILE *out, const char *text);

/* Of a signed number `value` has the bits. */
void kymo_json_integer(FILE *out, uint64_t value, bool is_signed);

#endif
