/* Rust's newer mangling. Private to the room. */
#ifndef KYMO_SYM_RUST_V0_H
#define KYMO_SYM_RUST_V0_H

#include <stdbool.h>
#include <stddef.h>

struct sym_sink;

/* [name, name + n) is "_R…" of RFC 2603. The same. */
bool sym_rust_v0(const char *name, size_t n, struct sym_sink *sink);

#endif
