/* Return addresses by frame pointers. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CHAIN_H
#define KYMO_ARCH_X86_64_CHAIN_H

#include <stdint.h>

struct code;
struct kymo_fetch;
struct kymo_pad_env;
struct kymo_pad_event;
struct x86_pad_site;

#define X86_CHAIN_SIZE_MAX 320u /* code bytes of one */

/* The chain, of an event that has one; else NULL. */
const struct kymo_fetch *x86_chain(const struct kymo_pad_event *event);

/* The most bytes of its chain in a record, behind their number; 0: it has none. */
uint32_t x86_chain_size(const struct kymo_pad_event *event);

/*
 * Store the chain of a record in the ring at r10. r11 is where in it, behind the u16 for the chain's size, and behind
 * the chain then. At most x86_chain_size() bytes are stored there. rax and rdx are changed. Nothing of the record may
 * be below the frame any more.
 */
void x86_store_chain(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		     const struct kymo_fetch *fetch);

#endif
