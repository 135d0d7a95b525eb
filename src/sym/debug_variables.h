/* Variables, and where they are. */
#ifndef KYMO_SYM_DEBUG_VARIABLES_H
#define KYMO_SYM_DEBUG_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/form.h"

struct kymo_ctype;
struct kymo_debug;

/* Where a value is while the thread is at an address. */
enum kymo_location_kind {
	KYMO_LOCATION_NOWHERE, /* `why` says why; static or the debug's */
	KYMO_LOCATION_VALUE,   /* `form` computes its low bytes; it has no address */
	KYMO_LOCATION_MEMORY,  /* `form` computes its address */
};

/* Registers in forms are those of DWARF (System V ABI for x86-64, figure 3.36): kymo_register_of_dwarf() of arch. */
struct kymo_location {
	enum kymo_location_kind kind;
	const char *why; /* "is optimized out here; it is alive from +0x12 to +0x40" */
	struct kymo_form form;
};

/* A variable that is visible at an address. */
struct kymo_variable {
	const char *name;
	const struct kymo_ctype *type;
	const char *declared_type;    /* as it is declared, typedefs and qualifiers kept: "const size_t" */
	bool is_parameter, is_static; /* is_static: of a file or function, at a fixed address or one
					 of the thread's */
	const char *inlined;          /* the inlined function that declares it, or NULL */
	unsigned int depth;           /* of the block that declares it: 0 the function's own; the innermost is first */
	struct kymo_location location;
};

/*
 * The parameters and locals that are visible at `vaddr`. Those of inner blocks come first, and those of an inlined
 * function before those of the function that it is in. At the entry of a function its frame does not exist yet.
 * Parameters that its debug information puts there are where the ABI passes them. NOT_FOUND: no function is described
 * there.
 */
struct kymo_error *kymo_debug_variables(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_variable **ret,
					size_t *n_ret);

/* A variable of files, by its name; that of the unit which holds `vaddr` before others. NULL in `ret`: there is none.
 * C++ and Rust names have their namespaces: "net::limit". */
struct kymo_error *kymo_debug_global(struct kymo_debug *debug, uint64_t vaddr, const char *name, size_t length,
				     const struct kymo_variable **ret);

/* The name of the variable of files that is most like this one, of which fewer than `least` bytes differ. NULL: there
 * is none. It belongs to `debug`. */
const char *kymo_debug_near_global(struct kymo_debug *debug, const char *name, size_t length, unsigned int least);

/* What returns a value. */
enum kymo_returned {
	KYMO_RETURNED_INTEGER, /* the register of integers and pointers */
	KYMO_RETURNED_VECTOR,  /* the first vector register */
	KYMO_RETURNED_MEMORY,  /* memory: the register of pointers has its address */
	KYMO_RETURNED_UNKNOWN, /* several registers, or it is not certain */
	KYMO_RETURNED_NOTHING, /* the function is void */
};

/* The type of what the function at `vaddr` (its entry) returns, and what returns it; NULL: nothing, or the type is left
 * open. */
struct kymo_error *kymo_debug_return_type(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_ctype **ret,
					  enum kymo_returned *returned_ret);

/* Whether the function at `vaddr` (its entry) is said never to return (_Noreturn). */
bool kymo_debug_never_returns(struct kymo_debug *debug, uint64_t vaddr);

/*
 * The name of the file (.dwo) that has what the compiler has split off from the unit of that address (-gsplit-dwarf),
 * if it is missing; or NULL. It belongs to `debug`.
 */
const char *kymo_debug_missing_file(struct kymo_debug *debug, uint64_t vaddr);

#endif
