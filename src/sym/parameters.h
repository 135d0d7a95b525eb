/* The parameters of functions, by debug information. */
#ifndef KYMO_SYM_PARAMETERS_H
#define KYMO_SYM_PARAMETERS_H

#include "base/vec.h"
#include "sym/sym.h"

/* A parameter where its function is entered. */
struct kymo_parameter {
	char *name;
	int register_number; /* of DWARF (System V ABI for x86-64, figure 3.36); -1 where `why` says why it has none */
	uint8_t size;        /* 1, 2, 4 or 8 bytes of that register */
	bool is_signed;
	const char *why; /* "is a floating-point number" …; static */
};

struct kymo_parameters {
	KYMO_VEC(struct kymo_parameter) items; /* in their order */
};

/*
 * The parameters of the C or C++ function that begins at `vaddr`, by the debug information of the module or of its
 * separate file. A parameter is where the debug information says it is at that very address. Where that names memory
 * that the function is yet to write, as code without optimisation has it, it is where the ABI passes it.
 *
 * NOT_FOUND: there is no debug information, or none of that function; BAD_DATA; NO_MEMORY.
 */
struct kymo_error *kymo_module_parameters(const struct kymo_module *module, uint64_t vaddr,
					  struct kymo_parameters *ret);
void kymo_parameters_deinit(struct kymo_parameters *parameters);

#endif
