/* Expressions of DWARF, made forms. Private to the room. */
#ifndef KYMO_SYM_DEBUG_EXPRESSION_H
#define KYMO_SYM_DEBUG_EXPRESSION_H

#include "sym/debug_state.h"

/* Where an expression is evaluated, and what it may ask for. */
struct sym_context {
	struct kymo_debug *debug;
	uint64_t vaddr;
	bool is_entry;              /* of its function: registers have what they had when it was entered */
	Dwarf_Die *function;        /* or NULL: nothing has a frame */
	Dwarf_Attribute *attribute; /* of the expression; or NULL */
};

/* What an expression comes to. */
struct sym_location {
	struct kymo_location location;
	bool is_in_frame; /* MEMORY at `frame_offset` from the frame base */
	bool is_fixed;    /* MEMORY at an address of the file, or of what each thread has of it */
	int64_t frame_offset;
	int frame_register; /* which is the frame base; -1: the CFA, or computed */
	int number;         /* the register that VALUE is; -1: it is not one */
};

/* What `n` operations say of a value of `size` bytes (0: not known). */
void sym_expression_convert(const struct sym_context *context, const Dwarf_Op *ops, size_t n, uint64_t size,
			    struct sym_location *ret);

void sym_location_nowhere(struct sym_location *where, const char *why);

/* Make it a constant. */
void sym_location_constant(struct sym_location *where, int64_t value);

/* Make it a register, by DWARF's number. */
void sym_location_register(struct sym_location *where, unsigned int number);

/* Make it a vector register, by its own number: its low 64 bits. */
void sym_location_vector(struct sym_location *where, unsigned int number);

#endif
