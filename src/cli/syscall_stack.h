/* Stacks of system calls: nothing without -k. */
#ifndef KYMO_CLI_SYSCALL_STACK_H
#define KYMO_CLI_SYSCALL_STACK_H

#include <stdbool.h>

struct cli_syscall_thread;

/* Take the stack of a thread that stands, in a call that it has begun or at a signal. */
void cli_syscall_stack_take(struct cli_syscall_thread *thread, bool is_in_call);

/* Its call has returned, which may have changed what is mapped. */
void cli_syscall_stack_saw(struct cli_syscall_thread *thread);

/* Its process is another program now, or gone. */
void cli_syscall_stack_forget(const struct cli_syscall_thread *thread);

#endif
