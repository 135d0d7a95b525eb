/* The rows of call frame information. Private to the room. */
#ifndef KYMO_SYM_CFI_H
#define KYMO_SYM_CFI_H

#include <stdint.h>

struct kymo_module;
struct sym_row;

/* The row for `vaddr`. */
void sym_row_find(struct kymo_module *module, uint64_t vaddr, struct sym_row *ret);

#endif
