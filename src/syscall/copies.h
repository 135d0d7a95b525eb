/* What a decoder reads of the memory of a call. */
#ifndef KYMO_SYSCALL_COPIES_H
#define KYMO_SYSCALL_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/copy.h"

enum { KYMO_SYSCALL_COPIED_MAX = 4096 }; /* bytes of a string, at most */

/* What kymo_syscall_enter(), or kymo_syscall_leave() and _result() read, for code that copies it during the call; how
 * many. Strings are shown up to `string_size`, which is at most KYMO_SYSCALL_COPIED_MAX. */
size_t kymo_syscall_copies(uint64_t number, bool is_leaving, size_t string_size, struct kymo_copy ret[KYMO_COPIES_MAX]);

#endif
