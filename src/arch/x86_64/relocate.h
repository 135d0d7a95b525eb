/* What can run elsewhere. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_RELOCATE_H
#define KYMO_ARCH_X86_64_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct x86_insn;

/* Why the instruction (decoded in full) cannot run at another address: the rest of a sentence that begins with the
 * instruction; NULL when it can. */
const char *x86_cannot_move(const struct x86_insn *insn);

/* The same where nothing is displaced with it, so that its first byte stays the start of what is run there. */
const char *x86_cannot_move_alone(const struct x86_insn *insn);

/* Whether its RIP-relative operand lies in the `size` bytes at `low`, or close before them. */
bool x86_reads_code(const struct x86_insn *insn, uint64_t low, uint64_t size);

/* Write one instruction, decoded in full at its runtime address, for runtime address `to`; what it leads to and means
 * may be changed in `insn` before. Its size does not depend on these. Returns it, or -ERANGE, -ENOSPC. */
int x86_relocate_insn(const struct x86_insn *insn, const uint8_t *bytes, uint64_t to, uint8_t *out, size_t size);

#endif
