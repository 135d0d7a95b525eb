/* Jumps by tables, in a clone. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_TABLE_H
#define KYMO_ARCH_X86_64_CLONE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct kymo_clone;
struct x86_clone_emitter;

/* Whether jumps by tables lead straight to copies: `is_tabled`, `scratch` and `targets` of a clone whose sites and held
 * register are known. */
void x86_clone_choose_tables(struct kymo_clone *clone);

/* The jump `index`, which is tabled; then, behind all code, what such jumps lead to. */
void x86_clone_emit_tabled(struct x86_clone_emitter *emitter, size_t index);
void x86_clone_emit_shadows(struct x86_clone_emitter *emitter,
			    uint64_t (*address_of)(struct x86_clone_emitter *emitter, int32_t to, uint64_t vaddr));

/* Bytes that these take at the most. */
size_t x86_clone_shadows_size(const struct kymo_clone *clone);

#endif
