/*
 * Debug information (DWARF 4 and 5, by libdw) as values need it: variables and where they are at an address, types and
 * their members, lines. Read-only; untrusted, as all of a target's files.
 *
 * All strings, types and arrays belong to the `kymo_debug` and live as long as it does. One thread at a time.
 */
#ifndef KYMO_SYM_DEBUG_H
#define KYMO_SYM_DEBUG_H

#include "sym/sym.h"
#include "wire/ctype.h"
#include "wire/form.h"

struct kymo_debug;

/*
 * The debug information of the module: its own, or that of a separate file (build-id folders, .gnu_debuglink, with a
 * .gnu_debugaltlink supplement). `debug_file` names one instead, or is NULL; one whose build-id is another is refused
 * with both told. NOT_FOUND: there is none, with what would bring it. BAD_DATA; NO_MEMORY. `module` must outlive it.
 */
struct kymo_error *kymo_debug_open(const struct kymo_module *module, const char *debug_file, struct kymo_debug **ret);
void kymo_debug_close(struct kymo_debug *debug);

/* Where a value is while the thread is at an address. */
enum kymo_location_kind {
	KYMO_LOCATION_NOWHERE, /* `why` says why; static or the debug's */
	KYMO_LOCATION_VALUE,   /* `form` computes its low bytes; it has no address */
	KYMO_LOCATION_MEMORY,  /* `form` computes its address */
};

/* Registers in forms are those of DWARF (System V ABI for x86-64, figure 3.36): kymo_register_of_dwarf() of arch. */
struct kymo_location {
	enum kymo_location_kind kind;
	const char *why; /* "is optimised out here; it is alive from +0x12 to +0x40" */
	struct kymo_form form;
};

/* A variable that is visible at an address. */
struct kymo_variable {
	const char *name;
	const struct kymo_ctype *type;
	const char *declared_type;    /* as it is declared, typedefs and qualifiers kept: "const size_t" */
	bool is_parameter, is_static; /* is_static: of a file or function, at a fixed address */
	const char *inlined;          /* the inlined function that declares it, or NULL */
	unsigned int depth;           /* of the block that declares it: 0 the function's own; the innermost is first */
	struct kymo_location location;
};

/*
 * The parameters and locals that are visible at `vaddr`, those of inner blocks first, of inlined functions that hold
 * the address before those of the function they are in. Where a function is entered, what its debug information says
 * to be in a frame that is yet to be made is where the ABI passes it. NOT_FOUND: no function is described there.
 */
struct kymo_error *kymo_debug_variables(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_variable **ret,
					size_t *n_ret);

/* A variable of files, by its name; that of the unit which holds `vaddr` before others. NULL in `ret`: there is none.
 * C++ and Rust names have their namespaces: "net::limit". */
struct kymo_error *kymo_debug_global(struct kymo_debug *debug, uint64_t vaddr, const char *name, size_t length,
				     const struct kymo_variable **ret);

/* The type that `text` names ("struct conn", "conn_t", "unsigned long *"), or NULL. */
struct kymo_error *kymo_debug_type(struct kymo_debug *debug, const char *text, size_t length,
				   const struct kymo_ctype **ret);

/* The type of pointers to `type`. NULL: out of memory. */
const struct kymo_ctype *kymo_debug_pointer(struct kymo_debug *debug, const struct kymo_ctype *type);

/* The members of a STRUCT or UNION; a declaration without members is looked up by its name in other units. */
struct kymo_error *kymo_debug_members(struct kymo_debug *debug, const struct kymo_ctype *type,
				      const struct kymo_ctype_member **ret, size_t *n_ret);

struct kymo_error *kymo_debug_enumerators(struct kymo_debug *debug, const struct kymo_ctype *type,
					  const struct kymo_ctype_enumerator **ret, size_t *n_ret);

/* The type of what the function at `vaddr` (its entry) returns; NULL: nothing. */
struct kymo_error *kymo_debug_return_type(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_ctype **ret);

/* ---- functions ------------------------------------------------------------------------------- */

/* Where a function begins: its own code, or an inlined instance. */
struct kymo_instance {
	uint64_t vaddr;
	const char *function; /* that holds it: itself, or the one which it is inlined into */
	bool is_inlined;
};

/* All instances of the function, by address. C++ and Rust names have their namespaces. n 0: there is no such. */
struct kymo_error *kymo_debug_instances(struct kymo_debug *debug, const char *name, size_t length,
					const struct kymo_instance **ret, size_t *n_ret);

/* ---- lines ----------------------------------------------------------------------------------- */

/* A location of a source line: where a statement of it begins (is_stmt), one a function or inlined instance. */
struct kymo_line {
	uint64_t vaddr;
	const char *file; /* as the line table has it */
	unsigned int line;
	const char *function; /* that holds it, not inlined, or NULL: none is described there */
	uint64_t entry;       /* of that function */
	const char *inlined;  /* the innermost inlined function that holds it, or NULL */
};

/*
 * The locations of line `line` of source files whose path ends in `file` ("app.c", "src/app.c"), at whole components.
 * Where no statement begins on that line, those of the next line that has one, which `line` of the results tells.
 * Ordered by address. n 0: `file` is known and has no such line. NOT_FOUND: no such source file, with nearest names.
 */
struct kymo_error *kymo_debug_lines(struct kymo_debug *debug, const char *file, unsigned int line,
				    const struct kymo_line **ret, size_t *n_ret);

/* All lines of the function that holds `vaddr` at which a statement begins, those of functions inlined into it, too, by
 * address; n 0: the line table has none. NOT_FOUND: no function is described there. */
struct kymo_error *kymo_debug_function_lines(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_line **ret,
					     size_t *n_ret);

/* The line of an address; false: not known. `function` and `inlined` may be NULL. */
bool kymo_debug_line_of(struct kymo_debug *debug, uint64_t vaddr, struct kymo_line *ret);

#endif
