/* Restartable sequences. */
#ifndef KYMO_SYM_RSEQ_H
#define KYMO_SYM_RSEQ_H

#include <stddef.h>

#include "base/error.h"

struct kymo_function;
struct kymo_module;

/* Restartable sequences that the module declares in __rseq_cs (start, end pairs as linked). */
struct kymo_error *kymo_module_rseq(struct kymo_module *module, const struct kymo_function **ret, size_t *n_ret);

#endif
