/* Keeping up with the descendants of a process. Private to the room. */
#ifndef KYMO_KERNEL_FOLLOW_H
#define KYMO_KERNEL_FOLLOW_H

#include <stdint.h>

#include "base/error.h"

struct btf;
struct kymo_kernel;

/* Keep the table of processes right from now on. */
struct kymo_error *kernel_follow(struct kymo_kernel *kernel);

/* Offset in bytes of a plain member of a structure of the kernel's; -ENOENT. */
int kernel_offset_of(const struct btf *btf, const char *structure, const char *member, uint32_t *ret);

#endif
