/*
 * The names of system calls, and the classes that they are in. Those of 32-bit programs have the number of the 64-bit
 * call of the same name, or one that no 64-bit program can use.
 */
#include "syscall/names.h"

#include <asm/unistd_64.h>
#include <inttypes.h>
#include <string.h>

#include "syscall/decode.h"
#include "syscall/i386.h"

/* Out of reach of every number that a program can use. */
#define I386_ONLY (1ull << 40)

#define CALL(call, classes, ...) [__NR_##call] = { #call, classes },

static const struct {
	const char *name;
	unsigned classes;
} calls[KYMO_SYSCALL_MAX] = {
#include "syscall/calls.def"
};

const char *kymo_syscall_name(uint64_t number)
{
	return number < KYMO_SYSCALL_MAX ? calls[number].name : NULL;
}

unsigned syscall_classes(uint64_t number)
{
	return number < KYMO_SYSCALL_MAX ? calls[number].classes : 0;
}

uint64_t kymo_syscall_from_i386(uint64_t number)
{
	const char *name = syscall_i386_name(number);

	if (number == UINT64_MAX)
		return number;
	for (uint64_t i = 0; name && i < KYMO_SYSCALL_MAX; i++)
		if (calls[i].name && !strcmp(calls[i].name, name))
			return i;
	return I386_ONLY + number;
}

/* The number that a 32-bit program has used, of one that has no other; others stay. */
static uint64_t original_number(uint64_t number)
{
	return number >= I386_ONLY && number < I386_ONLY + UINT32_MAX ? number - I386_ONLY : number;
}

const char *kymo_syscall_name_or_number(uint64_t number, char buffer[32])
{
	const uint64_t used = original_number(number);
	const char *name = used == number ? kymo_syscall_name(number) : syscall_i386_name(used);

	if (name)
		return name;
	snprintf(buffer, 32, "syscall_%#" PRIx64, used);
	return buffer;
}
