/* Waking the main thread of the tracer, by its pipe. */
#include "cli/syscall_wake.h"

#include "base/io.h"
#include "cli/syscalls.h"

void cli_syscalls_wake(const struct cli_syscalls *s, enum cli_syscalls_wake why)
{
	const char byte = (char)why;

	kymo_write_all(s->tracing.done[1], &byte, 1);
}
