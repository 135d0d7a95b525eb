/* Names of Rust: both of its manglings. Private to the room. */
#ifndef KYMO_SYM_RUST_H
#define KYMO_SYM_RUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where text goes; what does not fit is not written, and `is_full` says so. */
struct sym_sink {
	char *text;
	size_t n, size; /* `size` has room for the NUL */
	bool is_full;
};

void sym_sink_put(struct sym_sink *sink, const char *text, size_t n);

/* A character as UTF-8. False where it is none. */
bool sym_sink_character(struct sym_sink *sink, uint32_t character);

/* [name, name + n) is "_ZN…17h<16 hex digits>E". False where it is not; the sink may have part of it. */
bool sym_rust_legacy(const char *name, size_t n, struct sym_sink *sink);

#endif
