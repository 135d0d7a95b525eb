/* The machine that DWARF's operations are for: it makes forms. Private to the room. */
#ifndef KYMO_SYM_DEBUG_MACHINE_H
#define KYMO_SYM_DEBUG_MACHINE_H

#include "sym/debug_expression.h"

#define SYM_MACHINE_STACK_MAX 16
#define SYM_MACHINE_REGISTERS 16
#define SYM_MACHINE_VECTOR_FIRST 17 /* xmm0 … xmm15 */

struct sym_value {
	struct kymo_form form;
	uint8_t size; /* of its type: 1, 2, 4, 8 */
	bool is_typed, is_signed;
};

struct sym_machine {
	const struct sym_context *context;
	unsigned int nesting;
	struct sym_value stack[SYM_MACHINE_STACK_MAX];
	size_t n;
	const char *why; /* it has come to an end */
	int frame_register;
	bool is_in_thread; /* it has come to a thread-local variable */
};

/* The value that operations compute, on top of the stack; NULL with `why`. */
struct sym_value *sym_machine_convert(struct sym_machine *machine, const Dwarf_Op *ops, size_t n);

#endif
