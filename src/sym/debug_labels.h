/* Labels of functions. */
#ifndef KYMO_SYM_DEBUG_LABELS_H
#define KYMO_SYM_DEBUG_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_debug;

struct kymo_label {
	const char *name;
	bool has_address; /* else the compiler has left no code that begins there */
	uint64_t vaddr;
};

/* The labels of the function that holds `vaddr`, those of functions inlined into it, too. n 0: there are none.
 * NOT_FOUND: no function is described there. */
struct kymo_error *kymo_debug_labels(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_label **ret,
				     size_t *n_ret);

#endif
