/* Whether what code says of entries counts. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_FIRM_H
#define KYMO_ARCH_X86_64_FIRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct x86_builder;

/* Whether what code says of entries counts. -ENOMEM. */
int x86_note_branch(struct x86_builder *builder, size_t function, uint64_t source, uint64_t target);
int x86_note_address(struct x86_builder *builder, size_t function, uint64_t source, uint64_t target);
void x86_firm_reached(struct x86_builder *builder); /* settle those whose code turned out to be entered */
bool x86_firm_computed(
	struct x86_builder *builder); /* and those in functions with computed jumps: true if there are any */

#endif
