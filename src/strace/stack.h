/* Stacks of system calls: nothing without -k. */
#ifndef KYMO_STRACE_STACK_H
#define KYMO_STRACE_STACK_H

#include <stdbool.h>

struct strace_thread;

/* Take the stack of a thread that stands, in a call that it has begun or at a signal. */
void strace_stack_take(struct strace_thread *thread, bool is_in_call);

/* Its call has returned, which may have changed what is mapped. */
void strace_stack_saw(struct strace_thread *thread);

/* Its process is another program now, or gone. */
void strace_stack_forget(const struct strace_thread *thread);

#endif
