/* Functions that a probe leaves at once ('return'): whether their callers can go on with that. */
#ifndef KYMO_CLI_FORCED_RETURNS_H
#define KYMO_CLI_FORCED_RETURNS_H

#include <stddef.h>

#include "base/error.h"

struct kymo_debug;
struct kymo_spec;
struct kymo_symbol;

/*
 * Of a spec with 'return', and the functions that its name means. `debug` is the debug information of their file, or
 * NULL. USAGE: the name means several functions, or one that never returns, or the function's result is not what
 * 'return' gives. NO_MEMORY.
 */
struct kymo_error *cli_check_forced_return(const struct kymo_spec *spec, struct kymo_debug *debug,
					   const struct kymo_symbol *const *functions, size_t n);

#endif
