/* The table of system calls. Private to the room. */
#ifndef KYMO_SYSCALL_TABLE_H
#define KYMO_SYSCALL_TABLE_H

#include <stdint.h>

struct syscall_row;

/* NULL for unknown numbers. */
const struct syscall_row *syscall_row(uint64_t number);

#endif
