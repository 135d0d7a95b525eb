/* What the main thread of the tracer of system calls is woken for. */
#ifndef KYMO_STRACE_WAKE_H
#define KYMO_STRACE_WAKE_H

struct kymo_strace;

enum strace_wake {
	STRACE_END,
	STRACE_DELAYED, /* there is another delay to be ended */
};

/* Tell the main thread. From any thread, and from signal handlers. */
void strace_wake(const struct kymo_strace *s, enum strace_wake why);

#endif
