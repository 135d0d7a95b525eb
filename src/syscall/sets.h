/* Sets of system calls. */
#ifndef KYMO_SYSCALL_SETS_H
#define KYMO_SYSCALL_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "syscall/names.h"

struct kymo_syscall_set {
	uint64_t bits[KYMO_SYSCALL_MAX / 64];
	bool has_unknown; /* numbers without a name are in it, too */
};

/*
 * Read a set: items with commas between them, each added to those before. An item is a name, a number, a class (%file,
 * %desc, %process, %network, %signal, %ipc, %memory, %creds, %clock), "all" or "none". "/REGEX" takes the names that
 * the POSIX extended expression finds; it reaches to the end of the text, commas included. "!" at the beginning inverts
 * the whole set; before a later item it takes that item out again. USAGE, with the names that are nearest; NO_MEMORY.
 */
struct kymo_error *kymo_syscall_set_parse(const char *text, struct kymo_syscall_set *ret);

bool kymo_syscall_set_has(const struct kymo_syscall_set *set, uint64_t number);

#endif
