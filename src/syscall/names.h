/* Names and numbers of system calls. */
#ifndef KYMO_SYSCALL_NAMES_H
#define KYMO_SYSCALL_NAMES_H

#include <stdint.h>

enum { KYMO_SYSCALL_MAX = 512 }; /* numbers are below; those without a name are unknown */

/* The kernel's name of a call, static; NULL where this table has none. */
const char *kymo_syscall_name(uint64_t number);

/* The same, or "syscall_0x1c3" in `buffer`. */
const char *kymo_syscall_name_or_number(uint64_t number, char buffer[32]);

/* The number that a 32-bit program's call has here: that of the same name, or one without a place in sets, which has a
 * name of its own. -1 is none, and stays. */
uint64_t kymo_syscall_from_i386(uint64_t number);

/* What classes a call is in; none for unknown numbers. Private to the room. */
unsigned syscall_classes(uint64_t number);

#endif
