/* Jump tables at the addresses taken. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_TABLES_H
#define KYMO_ARCH_X86_64_TABLES_H

#include <stdbool.h>
#include <stdint.h>

struct x86_builder;
struct x86_jumps;

/* Jump tables at the addresses taken. -ENOMEM, -EFBIG where the module has been made to take for ever. */
int x86_find_tables(struct x86_builder *builder);
void x86_jumps_init(struct x86_builder *builder, struct x86_jumps *ret);
bool x86_has_table(void *builder, uint64_t vaddr);

#endif
