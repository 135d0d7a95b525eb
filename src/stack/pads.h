/* Where a thread is that stands in a pad of kymo's. Private to the room. */
#ifndef KYMO_STACK_PADS_H
#define KYMO_STACK_PADS_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_stack_thread;
struct stack_region;
struct stack_space;

/* The location in the text that a system call stands for which is made in a pad of kymo's; 0: in no such. */
uint64_t stack_home(struct stack_space *space, const struct kymo_stack_thread *thread);
bool stack_is_pad(const struct stack_region *region);

#endif
