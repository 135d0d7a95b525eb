/* What can be found without knowing where instructions begin. Cannot fail. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_SCAN_H
#define KYMO_ARCH_X86_64_SCAN_H

#include <stdint.h>

struct x86_builder;

/* What can be found without knowing where instructions begin. Cannot fail. */
void x86_scan_text(struct x86_builder *builder); /* rel32 branches and lea, at each byte */
void x86_scan_short(struct x86_builder *builder, uint64_t low, uint64_t high);    /* rel8 branches that begin there */
void x86_scan_absolute(struct x86_builder *builder, uint64_t low, uint64_t high); /* addresses as constants */
void x86_scan_data(struct x86_builder *builder); /* addresses in data, for position-dependent modules */

#endif
