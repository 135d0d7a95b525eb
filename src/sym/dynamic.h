/* The dynamic section. Private to the room. */
#ifndef KYMO_SYM_DYNAMIC_H
#define KYMO_SYM_DYNAMIC_H

#include "base/error.h"

struct kymo_module;

/* Fill in `dynamic`, `dynsym` and `soname`. */
struct kymo_error *sym_dynamic_read(struct kymo_module *module);

#endif
