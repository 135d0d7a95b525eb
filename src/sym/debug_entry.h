/* Where parameters are when their function is entered. Private to the room. */
#ifndef KYMO_SYM_DEBUG_ENTRY_H
#define KYMO_SYM_DEBUG_ENTRY_H

#include "sym/debug_expression.h"

/* What passes parameters so far, while one goes through them in their order. */
struct sym_passing {
	size_t n, n_vectors;  /* registers that are taken */
	size_t n_stacked;     /* words of the stack that are taken */
	const char *why_lost; /* it is not known how many; or NULL */
	bool is_stack_lost;   /* it is not known how many words */
	bool is_promoted;     /* a float comes as a double: the function has no prototype (ISO C17, 6.5.2.2) */
};

/* Before the first parameter of `function`, which is in `unit`. */
void sym_passing_init(struct sym_passing *passing, Dwarf_Die *function, const struct sym_unit *unit);

/* The next parameter. `where` is where the debug information says it to be; it becomes where it is. */
void sym_passing_next(struct sym_passing *passing, Dwarf_Die *parameter, struct sym_location *where);

/* A variable of a function that is entered: its frame may be yet to be made. */
void sym_entry_local(struct sym_location *where);

#endif
