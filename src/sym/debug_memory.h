/* Memory that lives as long as the debug information. Private to the room. */
#ifndef KYMO_SYM_DEBUG_MEMORY_H
#define KYMO_SYM_DEBUG_MEMORY_H

#include "sym/debug_state.h"

/* `size` bytes of zeros. NULL: out of memory, which sym_debug_end() tells. */
void *sym_debug_alloc(struct kymo_debug *debug, size_t size);

/* A copy of `n` items of `size` bytes; not NULL where n is 0. */
void *sym_debug_copy(struct kymo_debug *debug, const void *items, size_t n, size_t size);

/* A string; "" when memory is out. */
const char *sym_debug_format(struct kymo_debug *debug, const char *format, ...) __attribute__((format(printf, 2, 3)));

void sym_debug_free(struct kymo_debug *debug);

#endif
