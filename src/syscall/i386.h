/* Numbers of 32-bit programs' calls. Private to the room. */
#ifndef KYMO_SYSCALL_I386_H
#define KYMO_SYSCALL_I386_H

#include <stdint.h>

/* The name of a call by the number that 32-bit programs have for it; NULL for unknown ones. */
const char *syscall_i386_name(uint64_t number);

#endif
