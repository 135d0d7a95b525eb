/* One stack of a record, as a pad has written it, to frames of a tree. Private to the room. */
#ifndef KYMO_RECORD_STACK_NUMBER_H
#define KYMO_RECORD_STACK_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_frame_tree;
struct kymo_stacks;
struct record_source;

/* What a pad has written. The recorder believes no word of it. */
struct stack_bytes {
	const uint8_t *bytes; /* struct kymo_wire_stack and a copy, or struct kymo_wire_chain and return addresses */
	uint16_t size;
	bool is_chain;
	size_t frames; /* that are wanted at most; 0: all */
};

/* Whether they have the size of a stack. */
bool stack_bytes_are_one(const struct stack_bytes *stack);

/* The number of the innermost frame of such a stack, of a record of `source`. 0 where `tree` has no room for it, or
 * where nothing is known of the process: then `is_known_ret` gets false. */
uint32_t stack_number(struct kymo_stacks *stacks, struct kymo_frame_tree *tree, const struct record_source *source,
		      const struct stack_bytes *stack, bool *is_known_ret);

#endif
