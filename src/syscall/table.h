/* The table of system calls. Private to the room. */
#ifndef KYMO_SYSCALL_TABLE_H
#define KYMO_SYSCALL_TABLE_H

#include <stdint.h>

struct row;

/* NULL for unknown numbers. */
const struct row *syscall_row(uint64_t number);

#endif
