/* Where functions begin: their own code and inlined instances. */
#ifndef KYMO_SYM_DEBUG_INSTANCES_H
#define KYMO_SYM_DEBUG_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_debug;

/* Where a function begins: its own code, or an inlined instance. */
struct kymo_instance {
	uint64_t vaddr;
	const char *function; /* that holds it: itself, or the one which it is inlined into */
	bool is_inlined;
};

/* All instances of the function, by address. C++ and Rust names have their namespaces. n 0: there is no such. */
struct kymo_error *kymo_debug_instances(struct kymo_debug *debug, const char *name, size_t length,
					const struct kymo_instance **ret, size_t *n_ret);

#endif
