/*
 * Reading the encoded values of .eh_frame and language-specific data. Private to the room.
 * Reference: Linux Standard Base, "DWARF Extensions".
 */
#ifndef KYMO_SYM_CURSOR_H
#define KYMO_SYM_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_module;

#define SYM_PE_OMIT 0xff
#define SYM_PE_INDIRECT 0x80

/* A place in a module's bytes. `vaddr` is that of `at`. */
struct sym_cursor {
	struct kymo_module *module;
	const uint8_t *at, *end;
	uint64_t vaddr;
};

/* All are false at the end of the bytes and for what is too large; the place is undefined then. */
bool sym_read_u8(struct sym_cursor *cursor, uint8_t *ret);
bool sym_read_uleb(struct sym_cursor *cursor, uint64_t *ret);
bool sym_read_sleb(struct sym_cursor *cursor, uint64_t *ret);
bool sym_read_fixed(struct sym_cursor *cursor, unsigned int size, bool is_signed, uint64_t *ret); /* of up to 8 bytes */
bool sym_skip(struct sym_cursor *cursor, uint64_t size);

/*
 * A pointer in encoding `encoding`, `function` being what it may be relative to. Also false for unknown encodings. A
 * value of zero is zero whatever it is relative to, as unwinders see it.
 */
bool sym_read_pointer(struct sym_cursor *cursor, uint8_t encoding, uint64_t function, uint64_t *ret);

#endif
