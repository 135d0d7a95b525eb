/* System calls and signals as they are seen, by either way. */
#ifndef KYMO_CLI_SYSCALL_EVENTS_H
#define KYMO_CLI_SYSCALL_EVENTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct cli_syscall_thread;

/* A call is made. Then is_shown is to be set, what is shown is to be shown, and entered_ns to be set. */
void cli_syscall_enter(struct cli_syscall_thread *thread, uint64_t number, const uint64_t args[6],
		       uint64_t stack_pointer);
void cli_syscall_set_mode(struct cli_syscall_thread *thread, bool is_i386); /* of the call that was entered */
void cli_syscall_show_entry(struct cli_syscall_thread *thread);
void cli_syscall_leave(struct cli_syscall_thread *thread, int64_t result, uint64_t now_ns);
void cli_syscall_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_end_call(struct cli_syscall_thread *thread); /* that does not return, as its thread has died */
void cli_syscall_end(struct cli_syscall_thread *thread, int status);

#endif
