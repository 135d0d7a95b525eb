/* How the arguments and results of each system call are shown: calls.h as a table of decoders. */
#include <asm/unistd_64.h>

#include "syscall/decode.h"

#define CALL(call, classes, result, ...) [__NR_##call] = { result, { __VA_ARGS__ }, true },

static const struct row rows[KYMO_SYSCALL_MAX] = {
#include "syscall/calls.h"
};

const struct row *syscall_row(uint64_t number)
{
	return number < KYMO_SYSCALL_MAX && rows[number].is_known ? &rows[number] : NULL;
}
