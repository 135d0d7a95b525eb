/*
 * A system call that a signal handler can break off, also one that the kernel makes again after every handler
 * (ERESTARTNOINTR). Public header of the room, beside code.h.
 */
#ifndef KYMO_ARCH_BREAKABLE_H
#define KYMO_ARCH_BREAKABLE_H

/* As the kernel returns: a negative errno. -EINTR: kymo_break_call() has come before it was made, or while it waited,
 * and nothing was done. */
long kymo_breakable_call(long number, long a, long b, long c, long d, long e);

/* In a handler with SA_SIGINFO, for the thread that it has interrupted; `context` is its third argument. Where that is
 * not about to make the call, or has been in it to its end, nothing changes. */
void kymo_break_call(void *context);

#endif
