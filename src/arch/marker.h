/*
 * Text at kymo's own markers (include/kymo/marker_x86_64.h), which a jump replaces while they are on. Public header of
 * the room, beside plan.h.
 */
#ifndef KYMO_ARCH_MARKER_H
#define KYMO_ARCH_MARKER_H

#include "arch/plan.h"

/* What the file has: a NOP as long as the jump. */
extern const uint8_t kymo_marker_nop[KYMO_JUMP_SIZE];

/* The first byte of `test $imm32,%eax`, which is as long and does nothing there: between the two. */
#define KYMO_MARKER_BETWEEN 0xa9

#endif
