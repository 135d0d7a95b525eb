/* What is made of that which threads do: a form of output. Private to the room. */
#ifndef KYMO_STRACE_SINK_H
#define KYMO_STRACE_SINK_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct kymo_strace;
struct strace_thread;

/* They write to the trace's stream, or to that of the thread. */
struct strace_sink {
	void (*enter)(struct strace_thread *thread);
	void (*leave)(struct strace_thread *thread, uint64_t duration_ns);
	void (*end_call)(struct strace_thread *thread); /* that does not return */
	void (*signal)(struct strace_thread *thread, const siginfo_t *info);
	void (*stop)(struct strace_thread *thread, int signal);
	void (*superseded)(struct strace_thread *thread, pid_t by);
	void (*end)(struct strace_thread *thread, int status);
	void (*lost)(struct kymo_strace *s, uint64_t n);
	/* May be NULL: nothing is written of that. */
	void (*mode)(struct strace_thread *thread);      /* its calls have other numbers from here on */
	void (*let_go)(struct kymo_strace *s);           /* what was begun stays without an end */
	void (*let_go_of)(struct strace_thread *thread); /* the same, where it is this thread's */
};

#endif
