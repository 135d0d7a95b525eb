/* Rule 4 of aggr/stacks.h. docs/internals/returns.md has its reasons and its limits. */
#ifndef KYMO_AGGR_CHOICE_H
#define KYMO_AGGR_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggr/stacks.h"

/*
 * Go on on the stack that an entry is on, of a call that `leaves` then (as struct frame has it). False when memory is
 * out.
 *
 *	- A stack where a call at or below the stack pointer returns later is not the one: that call would be over.
 *	- Nor is one where a call above it returns before `leaves`: it would not be within that call.
 *	- Of the others, those where the stack pointer was seen before come first, and those with a call right above
 *	  it; of these, the one with the nearest call above it. For that, calls that do not return are passed over, as
 *	  if they were over.
 *	- If no call is above it less than STACK_REACH (the present stack) or STACK_CLOSE away, it is a new stack.
 */
bool kymo_stack_choose(struct stack *stack, uint64_t stack_pointer, uint32_t leaves);

#endif
