/* What all pads begin and end with. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_EMIT_H
#define KYMO_ARCH_X86_64_EMIT_H

#include "arch/pad.h"
#include "arch/x86_64/code.h"

/* Put up the frame; `flags`: with the whole flags register in it. */
void x86_emit_save(struct code *c, bool flags);

/* Take it down: all is as the program has it. */
void x86_emit_restore(struct code *c);

/* Restore, then what was displaced. The layout's offsets are filled in. */
int x86_emit_way_out(struct code *c, const struct kymo_plan *plan, uint64_t site, struct kymo_pad_layout *layout);

#endif
