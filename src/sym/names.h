/* The parts of names of C++ and Rust. */
#ifndef KYMO_SYM_NAMES_H
#define KYMO_SYM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes of a demangled name come before its parameters. */
size_t kymo_name_size(const char *name);

/*
 * Where brackets, or the name of an operator, that begin at `at` end: within them nothing separates. `at` itself where
 * none begin there, or where they are not closed before `end`. The text begins at `start`. "operator<<", "(anonymous
 * namespace)", "<T as Trait>", "[abi:cxx11]".
 */
const char *kymo_name_skip(const char *start, const char *at, const char *end);

/* ---- private to the room --------------------------------------------------------------------- */

/* "int shop::twice<int>(int) const": `name` is after the type, then come the parameters and the rest; both may be
 * empty. */
struct sym_parts {
	const char *name, *parameters, *rest;
};

void sym_parts_find(const char *text, struct sym_parts *ret);

/* Whether names of the source may have the character; bytes of UTF-8 are taken for letters. */
static inline bool sym_is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       (unsigned char)c >= 0x80;
}

#endif
