/* The part of the programs of system calls that copies memory. Private to the room. */
#ifndef KYMO_KERNEL_CALL_COPIES_H
#define KYMO_KERNEL_CALL_COPIES_H

#include <stddef.h>
#include <stdint.h>

struct kernel_code;
struct kymo_copy;

/* Behind the sample's end, which is in r7. What fails is noted in the sample: it is incomplete. */
void call_copy_make(struct kernel_code *c, const struct kymo_copy *copy);

/* The most that the copies may take, if that is little; else -1. */
int32_t call_copies_room(const struct kymo_copy *copies, size_t n);

#endif
