/*
 * Instructions of which nothing but the length matters to a sweep: what they do stays in registers and in memory that
 * they name by registers, and the next one follows. Most instructions are such, and telling how long they are takes a
 * tenth of the time that decoding them takes. Private to arch/x86_64.
 */
#ifndef KYMO_ARCH_X86_64_PLAIN_H
#define KYMO_ARCH_X86_64_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/* The length of the instruction that begins with these bytes. 0 where it is not known to be plain, or does not end
 * within `size`: then it is to be decoded. What is not 0 is what x86_decode() gives, with X86_FLOW_NEXT, no target and
 * no RIP-relative operand. */
size_t x86_plain_length(const uint8_t *bytes, size_t size);

#endif
