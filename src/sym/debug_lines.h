/* Lines of source. */
#ifndef KYMO_SYM_DEBUG_LINES_H
#define KYMO_SYM_DEBUG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_debug;

/* A location of a source line: where a statement of it begins (is_stmt), one a function or inlined instance. */
struct kymo_source_line {
	uint64_t vaddr;
	const char *file; /* with the directory in which it was compiled, where that is known */
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
				    const struct kymo_source_line **ret, size_t *n_ret);

/* The source files with code whose path ends in `file`, each once, with the directory in which it was compiled; n 0:
 * none has code. They live with `debug`. NOT_FOUND: no such source file, with nearest names. */
struct kymo_error *kymo_debug_sources(struct kymo_debug *debug, const char *file, const char *const **ret,
				      size_t *n_ret);

/* All lines of the function that holds `vaddr` at which a statement begins, those of functions inlined into it, too, by
 * address; n 0: the line table has none. NOT_FOUND: no function is described there. */
struct kymo_error *kymo_debug_function_lines(struct kymo_debug *debug, uint64_t vaddr,
					     const struct kymo_source_line **ret, size_t *n_ret);

/* The line of an address, whose file is as the line table has it; false: not known. `function` and `inlined` may be
 * NULL. */
bool kymo_debug_line_of(struct kymo_debug *debug, uint64_t vaddr, struct kymo_source_line *ret);

#endif
