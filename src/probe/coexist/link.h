/* Where jumps in the text lead. Private to the room. */
#ifndef KYMO_PROBE_COEXIST_LINK_H
#define KYMO_PROBE_COEXIST_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_process;

/* Reads `size` bytes at `address`: 0, or a negative errno. */
typedef int probe_link_read(void *data, uint64_t address, void *ret, size_t size);

/* Where the jmp rel32 at `address` leads; 0 if there is none. */
uint64_t probe_jump_at(struct kymo_process *process, uint64_t address);

/*
 * Whether the text at `address`, of which `patch_size` bytes were changed, has a jump to `link`; also if they are the
 * same. A pun's is made of bytes that follow, and begins after prefixes; that of an evicted neighbor is where a short
 * jump leads.
 */
bool probe_leads_to_link(struct kymo_process *process, uint64_t address, size_t patch_size, uint64_t link);

/* The same two, of memory that is read by `read`. */
uint64_t probe_jump_by(probe_link_read *read, void *data, uint64_t address);
bool probe_leads_to_link_by(probe_link_read *read, void *data, uint64_t address, size_t patch_size, uint64_t link);

#endif
