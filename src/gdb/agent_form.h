/* gdb's agent expressions as forms (wire/form.h), which have the same values. Pure. */
#ifndef KYMO_GDB_AGENT_FORM_H
#define KYMO_GDB_AGENT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/form.h"
#include "wire/prints.h"

/*
 * The form of an expression that is evaluated where the program counter is `pc`. It has the value that
 * gdb_agent_evaluate() gives, and is a fault where that gives none. `ret` passes kymo_form_check() for general
 * registers.
 *
 * False: it has no form, and `ret` is changed. Such an expression jumps backward, names a register that is not a
 * general one, or does not leave exactly one value. Or it takes more operations, values or reads of memory than a form
 * may have. Or it has an instruction that no form has: `rot`, and those that gdb_agent_evaluate() does not know.
 */
bool gdb_agent_compile(const uint8_t *code, size_t size, uint64_t pc, struct kymo_form *ret);

/* A command that prints once, and does nothing else. */
struct gdb_print {
	size_t n;
	struct kymo_form args[KYMO_WIRE_PRINT_ARGS]; /* as those of gdb_agent_compile() */
	uint32_t strings;                            /* bit i: argument i is the address of a string */
	const char *format;                          /* in `code`, without its NUL */
	size_t format_size;
};

/* Its format and the forms of its arguments. False: it is no such command, or one argument has no form. Then `ret` is
 * changed. */
bool gdb_agent_compile_print(const uint8_t *code, size_t size, uint64_t pc, struct gdb_print *ret);

#endif
