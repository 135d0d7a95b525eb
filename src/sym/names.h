/* The parts of names of C++ and Rust. Private to the room. */
#ifndef KYMO_SYM_NAMES_H
#define KYMO_SYM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* "int shop::twice<int>(int) const": `name` is behind the type, then come the parameters and the rest; both may be
 * empty. */
struct sym_parts {
	const char *name, *parameters, *rest;
};

void sym_parts_find(const char *text, struct sym_parts *ret);

#endif
