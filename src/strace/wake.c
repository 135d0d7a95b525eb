/* Waking the main thread of the tracer, by its pipe. */
#include "strace/wake.h"

#include "base/io.h"
#include "strace/state.h"

void strace_wake(const struct kymo_strace *s, enum strace_wake why)
{
	const char byte = (char)why;

	kymo_write_all(s->tracing.done[1], &byte, 1);
}
