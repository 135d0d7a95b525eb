/* System calls as lines, as strace writes them. */
#ifndef KYMO_CLI_SYSCALL_LINES_H
#define KYMO_CLI_SYSCALL_LINES_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct cli_syscall_thread;
struct cli_syscalls;

void cli_syscall_line_enter(struct cli_syscall_thread *thread);
void cli_syscall_line_mode(struct cli_syscall_thread *thread); /* its calls have other numbers from here on */
void cli_syscall_line_leave(struct cli_syscall_thread *thread, uint64_t duration_ns);
void cli_syscall_line_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_line_stop(struct cli_syscall_thread *thread, int signal);
void cli_syscall_line_end_call(struct cli_syscall_thread *thread); /* that does not return */
void cli_syscall_line_superseded(struct cli_syscall_thread *thread, pid_t by);
void cli_syscall_line_end(struct cli_syscall_thread *thread, int status);
void cli_syscall_line_lost(struct cli_syscalls *s, uint64_t n);
void cli_syscall_line_let_go(struct cli_syscalls *s);               /* the open line stays without an end */
void cli_syscall_line_let_go_of(struct cli_syscall_thread *thread); /* the same, where it is this thread's */

#endif
