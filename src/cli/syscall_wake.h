/* What the main thread of the tracer of system calls is woken for. */
#ifndef KYMO_CLI_SYSCALL_WAKE_H
#define KYMO_CLI_SYSCALL_WAKE_H

struct cli_syscalls;

enum cli_syscalls_wake {
	CLI_SYSCALLS_END,
	CLI_SYSCALLS_DELAYED, /* there is another delay to be ended */
};

/* Tell the main thread. From any thread, and from signal handlers. */
void cli_syscalls_wake(const struct cli_syscalls *s, enum cli_syscalls_wake why);

#endif
