/* What leads into a function. Cannot fail. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_SOURCES_H
#define KYMO_ARCH_X86_64_SOURCES_H

#include <stddef.h>
#include <stdint.h>

struct x86_builder;
struct x86_insn;

/* What leads into a function. Cannot fail. */
void x86_note_source(struct x86_builder *builder, size_t function, const struct x86_insn *branch);
void x86_note_taken(struct x86_builder *builder, size_t function, uint64_t target);

#endif
